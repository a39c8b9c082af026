"""``spscanner eval --answers``: a language model answers the questions that the retrievers were asked."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spscanner_rag.apps.cli.arguments import optional
from spscanner_rag.text.escaping import one_line

if TYPE_CHECKING:
    from spscanner_rag.lab.answers.prompts import AnswerLength
    from spscanner_rag.lab.evaluation.answer_run import AnswerSet, AnswerSource
    from spscanner_rag.lab.evaluation.report.result import Result
    from spscanner_rag.lab.evaluation.settings import Setting
    from spscanner_rag.lab.llm.asking import Asker
    from spscanner_rag.scorers import Scorer

FORMS = ("phrase", "sentence", "paragraph")

ENDED_EARLY = 3
"""Exit code of a run whose model may not be asked more."""

Answers = Annotated[
    str | None,
    optional(
        "Language model that answers the questions from the best 50 sentences, or 5 chunks, of each retriever: "
        "PROVIDER:MODEL, such as openai:gpt-4o-mini, or FILE.py:NAME.",
        "LLM",
    ),
]
Judge = Annotated[
    str | None,
    optional("With --answers: model that compares answers with the right ones. Default: none.", "LLM"),
]
DirectAnswers = Annotated[
    bool,
    typer.Option(
        "--direct-answers",
        help="With --answers: also answer from whole documents; long ones in windows, whose answers are merged.",
    ),
]
DirectWindow = Annotated[
    int,
    typer.Option(
        min=1, metavar="N", help="Tokens of these windows; each begins half a window after the last."
    ),
]
AnswerForm = Annotated[str, typer.Option(help="Form of the answers: phrase, sentence or paragraph.")]
MaxAnswerRequests = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        help="With --answers: most requests to both models, earlier runs in the folder included.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class AnswerOptions:
    """The options about answers; ``ValueError`` for those that do not go together."""

    answers: str | None
    judge: str | None
    direct: bool
    window: int
    form: str
    most: int | None

    def __post_init__(self) -> None:
        needing = {"--judge": self.judge, "--direct-answers": self.direct, "--max-requests": self.most}
        for option, value in needing.items():
            if self.answers is None and value not in (None, False):
                raise ValueError(f"got {option} without --answers; expected both, or neither")
        if self.form not in FORMS:
            raise ValueError(f"--answer-form: got {self.form!r}; expected one of {', '.join(FORMS)}")


class Answering:
    """The answers to the questions of a study, whose models are loaded before any work.

    Raises
    ------
    ValueError, ImportError
        For a study whose questions are not asked of single documents or have no answers, and for a model that is
        not there.
    """

    def __init__(self, options: AnswerOptions, study: object) -> None:
        from spscanner_rag.lab.evaluation.answer_run import questions_with_answers
        from spscanner_rag.lab.evaluation.study import RotatedStudy, Study
        from spscanner_rag.lab.llm.language_models import named_model
        from spscanner_rag.text.token_counts import resolve_counter

        if not isinstance(study, Study) or isinstance(study, RotatedStudy):
            raise ValueError(
                "got --answers with --corpus, --among, --rotate or a folder in BEIR's layout; expected questions "
                "on single documents: make two runs, each with its own --out"
            )
        self.options, self.study = options, study
        self.questions = questions_with_answers(study.questions)
        self.model = named_model(options.answers or "")[1]
        self.judge = None if options.judge is None else named_model(options.judge)[1]
        self.count_tokens = resolve_counter("o200k_base")

    def added_to(
        self, result: "Result", scorers: Mapping["Setting", "Scorer"], titles: dict[str, str], out: Path
    ) -> tuple["Result", str]:
        """The result with the answers, and why asking ended early, if it did; ``answers.jsonl`` is written."""
        from spscanner_rag.checkpoint.whole_file import write_whole
        from spscanner_rag.lab.evaluation.answer_run import retriever_sources, whole_documents
        from spscanner_rag.lab.evaluation.report.answer_table import answer_lines, answer_rows, answer_table
        from spscanner_rag.lab.llm.asking import Asker, Budget
        from spscanner_rag.lab.llm.replies import ReplyFile

        sources = retriever_sources(self.study.settings, scorers, titles)
        if self.options.direct:
            sources.append(whole_documents(self.options.window))
        with ReplyFile(out / "answer-replies.jsonl") as replies:
            budget = Budget(max_requests=self.options.most, requests=replies.attempts, usage=replies.usage)
            asker = Asker(replies=replies, budget=budget, count_tokens=self.count_tokens, retries=5)
            sets = self._answer_sets(sources, asker)
            prompt_tokens, reply_tokens = replies.usage
            spent = {
                "requests": replies.attempts, "prompt_tokens": prompt_tokens, "reply_tokens": reply_tokens,
            }  # fmt: skip
        rows = answer_rows(sets, self.study.seed)
        write_whole(out / "answers.jsonl", "".join(f"{json.dumps(line)}\n" for line in answer_lines(sets)))
        named = {"model": self.options.answers, "judge": self.options.judge, "form": self.options.form}
        table = answer_table(sets, rows, self.judge is not None)
        found = replace(
            result,
            tables=[*result.tables, table],
            files={**result.files, "answers.json": {**named, "spent": spent, "rows": rows}},
        )
        return found, budget.stopped

    def _answer_sets(self, sources: "Sequence[AnswerSource]", asker: "Asker") -> "list[AnswerSet]":
        from spscanner_rag.apps.pages.terminal import open_console, progress_bars
        from spscanner_rag.lab.evaluation.answer_run import answer_from

        sets = []
        console = open_console(sys.stderr)
        with progress_bars(console, disable=not console.is_terminal) as bars:
            for source in sources:
                bar = bars.add_task(one_line(f"answers from {source.label}"), total=None)

                def show(done: int, bar: Any = bar) -> None:  # noqa: ANN401 - rich's own number
                    bars.update(bar, completed=done)

                form: AnswerLength = self.options.form  # type: ignore[assignment]  # one of `FORMS`
                shown = replace(asker, progress=show)
                sets.append(answer_from(source, self.questions, self.model, self.judge, shown, form))
        return sets


def tell_ended_early(stopped: str) -> None:
    """Say why answers are missing, and end the program with `ENDED_EARLY`."""
    told = f"ended early: {stopped}; the same command goes on, and asks nothing again that has a reply"
    sys.stderr.write(f"spscanner: {one_line(told)}\n")
    raise typer.Exit(ENDED_EARLY)
