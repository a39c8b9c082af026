"""Options of ``spscanner eval``, and their checks."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from spscanner_rag.apps.cli.declaring import option
from spscanner_rag.apps.cli.listed_names import names_in

if TYPE_CHECKING:
    from spscanner_lab.evaluation.aggregation import DocumentForm


@dataclass(frozen=True, kw_only=True)
class EvaluationOptions:
    """Which questions are asked of which texts, and what is measured.

    ``ValueError`` for options that clash.
    """

    max_questions: int | None = option(
        None, "At most this many questions from each source.", lowest=1
    )
    seed: int = option(
        0, "Seed for the choice of questions and for the intervals.", lowest=0
    )
    held_out: list[str] | None = option(
        None, "Of these sources, only what training leaves out.", "SOURCE..."
    )
    skip_bad: bool = option(False, "Skip bad lines, and count them.")
    context_ablation: bool = option(
        False, "Also run each scanner on single units and on 1,024-token chunks."
    )
    calibration: bool = option(
        False, "Also test if scores are probabilities; ask unanswerable questions."
    )
    corpus: bool = option(
        False, "Search all documents of a source together, not only a question's own."
    )
    among: int | None = option(
        None,
        "As --corpus, on the right document and the N - 1 hardest others of its"
        " source.",
        "N",
        lowest=2,
    )
    first_stage: str | None = option(
        None,
        "With --corpus: first stages, comma-separated, that choose the documents for a"
        " retriever without an index: none (it reads all), bm25, or a retriever, by its"
        " best chunks. Default: bm25; with --among, none.",
    )
    read_documents: int = option(
        10, "With a first stage: the most documents to read.", "N", lowest=1
    )
    document_characters: int | None = option(
        None,
        "With --corpus: cut longer documents at sentence ends, keeping evidence.",
        "N",
        lowest=1,
    )
    cutoffs: str = option(
        "", "Numbers of units (of documents for BEIR) to measure at.", "K,..."
    )
    aggregation: str = option(
        "max",
        "With --corpus or BEIR: how the scores of units become a document's: FirstP,"
        " LongP, MaxP, SumP; FirstP-512, LongP-1536 (the first tokens); max, mean,"
        " mean_top, sum, logsumexp, first, or long (--unit document).",
    )
    split: str = option("test", "With BEIR: the judgements to use, qrels/SPLIT.tsv.")
    answers: str | None = option(
        None,
        "Language model that answers the questions from each retriever's best 50"
        " sentences or 5 chunks: PROVIDER:MODEL, such as openai:gpt-4o-mini, or"
        " FILE.py:NAME.",
        "LLM",
    )
    judge: str | None = option(
        None, "With --answers: model that grades answers by the right ones.", "LLM"
    )
    direct_answers: bool = option(
        False, "With --answers: also read whole documents, long ones in windows."
    )
    direct_window: int = option(
        120_000, "Tokens per window; windows overlap by half.", "N", lowest=1
    )
    answer_form: str | None = option(
        None, "phrase, sentence, paragraph; default: the data's, else sentence."
    )
    answer_units: int | None = option(
        None, "With --answers: use the N best units instead.", "N", lowest=1
    )
    answer_words: int | None = option(
        None, "With --answers: use N words of the best units.", "N", lowest=1
    )
    max_requests: int | None = option(
        None, "Most requests for --answers, all runs together.", "N", lowest=0
    )

    def __post_init__(self) -> None:
        if self.answers is None:
            needing = "judge direct_answers max_requests answer_units answer_words"
            self.refuse(needing, "without --answers; expected both, or neither")
        from spscanner_lab.evidence.questions import ANSWER_FORMS

        if self.answer_form is not None and self.answer_form not in ANSWER_FORMS:
            forms = ", ".join(ANSWER_FORMS)
            raise ValueError(
                f"--answer-form: got {self.answer_form!r}; expected one of {forms}"
            )

    def refuse(self, names: str, why: str) -> None:
        """Raise ``ValueError`` for the first of these options without its default."""
        declared: dict[str, Any] = {field.name: field.default for field in fields(self)}
        for name in names.split():
            if getattr(self, name) != declared[name].default:
                raise ValueError(f"got --{name.replace('_', '-')} {why}")

    @property
    def form(self) -> "DocumentForm":
        """How the scores of units become a document's score."""
        from spscanner_lab.evaluation.aggregation import document_form

        return document_form(self.aggregation)

    @property
    def measured(self) -> tuple[int, ...]:
        """The cut-offs, ascending, by default those of the paper."""
        from spscanner_lab.evidence.metrics import CUTOFFS

        if not self.cutoffs:
            return CUTOFFS
        cutoffs = set()
        for word in self.cutoffs.split(","):
            digits = word.strip()
            is_whole = digits.isascii() and digits.isdigit()
            if not is_whole or not 0 < int(digits) < 10**6:
                raise ValueError(
                    f"--cutoffs: got {self.cutoffs!r}; expected whole numbers such as"
                    " 1,2,5,10,20,50,100"
                )
            cutoffs.add(int(digits))
        return tuple(sorted(cutoffs))

    def stages(self, is_corpus: bool, few: bool = False) -> list[str]:
        """The first stages, by default none with ``few`` documents.

        ``ValueError`` for options that clash.
        """
        from spscanner_lab.evaluation.aggregation import document_form
        from spscanner_lab.evaluation.first_stage import NO_STAGE, WORDS

        document_form(self.aggregation)  # it checks the name
        if not is_corpus:
            needing = "aggregation first_stage document_characters"
            self.refuse(needing, "without --corpus; expected both, or neither")
            return []
        alone = (
            "and --corpus; expected one of them: make two runs, each with its own --out"
        )
        self.refuse("context_ablation calibration", alone)
        reads_all = few or self.among is not None
        usual = NO_STAGE if reads_all else WORDS
        return first_stages_of(self.first_stage or usual)


def first_stages_of(value: str) -> list[str]:
    """The names in --first-stage.

    ``ValueError`` for a retriever that cannot be one.
    """
    from spscanner_lab.evaluation.first_stage import NO_STAGE, WORDS
    from spscanner_rag.baselines.names import NameParts, check_name

    names = names_in("--first-stage", value)
    for name in names:
        if name not in (NO_STAGE, WORDS):
            check_name(name)
            if NameParts.of(name).kind in ("scanner", "remote"):
                raise ValueError(
                    f"--first-stage: got {name!r}; expected a retriever that ranks"
                    " chunks"
                )
    return names
