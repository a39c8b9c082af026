"""Studies: which questions a run asks of each setting, and how it turns the records into a result."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from spscanner_lab.evaluation.corpora import Corpus, corpora_of
from spscanner_lab.evaluation.records import Record
from spscanner_lab.evaluation.result import (
    Result,
    Table,
    calibration_rows,
    calibration_tables,
    characters_table,
    corpora_table,
    documents_table,
)
from spscanner_lab.evaluation.run import Ask, Plan, documents_alone
from spscanner_lab.evaluation.statistics import TESTED, differences_of, rows_of
from spscanner_lab.evidence.calibration import THRESHOLD
from spscanner_lab.evidence.metrics import CUTOFFS
from spscanner_lab.evidence.questions import (
    Asked,
    Document,
    document_digest,
    sample_questions,
)
from spscanner_rag.baselines.settings import Setting

Questions = Mapping[str, Sequence[Asked]]  # by source, from `sample_questions`

NO_STAGE, WORDS = "none", "bm25"
"""First stages other than retrievers: read all documents, or those that the index of
words ranks first."""

DOCUMENT_TESTED = (
    ("document_mrr", "recall@10"),
    ("document_mrr", "recall_at_tokens@1000"),
)
"""Metrics of the paired tests on corpora, within one unit and across units."""


@dataclass(frozen=True)
class Study:
    """A run: what each setting is asked, and how its records become a result."""

    settings: Sequence[Setting]  # plain settings, in the order of the tables
    questions: Questions
    seed: int  # of the intervals
    asks: Sequence[Ask]
    arguments: Mapping[str, object]  # must be the same when the run resumes
    plan: Plan
    tested: tuple[Sequence[str], Sequence[str]] = (
        TESTED  # metrics, within one unit and across units
    )
    tables: Callable[[Result], Sequence[Table]] = lambda result: ()  # additional tables

    @property
    def of_corpora(self) -> bool:
        """Whether a question is asked of many documents together."""
        return any(ask.together for ask in self.asks)

    @property
    def stages(self) -> list[Setting]:
        """The settings whose scorers serve as first stages."""
        return list(
            dict.fromkeys(
                ask.stage for ask in self.asks if isinstance(ask.stage, Setting)
            )
        )

    def result(self, records: Sequence[Record]) -> Result:
        """Rows of metrics, paired tests of the first setting against each other, and the study's own tables."""
        settings = [ask.setting for ask in self.asks]
        answerable = [record for record in records if record.answerable]
        rows = rows_of(answerable, settings, self.seed)
        pairs = [(settings[0], other) for other in settings[1:]]
        differences = differences_of(answerable, pairs, self.seed, self.tested)
        result = Result(rows, differences, settings, cutoffs=self.plan.cutoffs)
        calibrated = [ask.setting for ask in self.asks if ask.calibrate]
        if not calibrated:
            return replace(result, tables=self.tables(result))
        left_out = [setting.label for setting in settings if setting not in calibrated]
        rates = calibration_rows(records, calibrated, self.seed)
        files = {
            "calibration.json": {
                "threshold": THRESHOLD,
                "left_out": left_out,
                "rows": rates,
            }
        }
        return replace(result, tables=calibration_tables(rates, left_out), files=files)


def study_of(
    settings: Sequence[Setting],
    documents: Sequence[Document],
    plan: Plan,
    per_source: int | None = None,
    seed: int = 0,
    *,
    calibration: bool = False,
    answered: bool = False,
) -> Study:
    """The run that a command line asks for, on single documents.

    ``ValueError`` if there is nothing to ask.

    With ``answered`` it includes questions that have right answers to compare with, but
    no evidence. With ``calibration`` the settings with probabilities are also asked
    unanswerable questions, in the same call.
    """
    calibrated = [
        setting for setting in settings if calibration and setting.has_probabilities
    ]
    if calibration and not calibrated:
        raise ValueError(
            f"--calibration: got {', '.join(setting.label for setting in settings)},"
            " whose scores are not probabilities; expected a scanner among"
            " --retrievers"
        )
    questions = sample_questions(documents, per_source, seed, answered=answered)
    if not questions:
        wanted = "evidence or answers" if answered else "evidence"
        raise ValueError(
            f"the data have no answerable question with {wanted}; expected at least one"
        )
    unanswerable = (
        sample_questions(documents, per_source, seed, answerable=False)
        if calibration
        else {}
    )
    sources = sorted({*questions, *unanswerable})
    both = {
        source: [*questions.get(source, ()), *unanswerable.get(source, ())]
        for source in sources
    }

    asks = []
    for setting in settings:
        corpora = partial(documents_alone, both if setting in calibrated else questions)
        asks.append(
            Ask(setting, setting, corpora, plan, calibrate=setting in calibrated)
        )
    arguments = arguments_of([], questions, plan)
    if calibration:
        arguments["calibration"] = digest_of(unanswerable)
    return Study(settings, questions, seed, asks, arguments, plan)


def corpus_study_of(
    settings: Sequence[Setting],
    documents: Sequence[Document],
    plan: Plan,
    per_source: int | None = None,
    seed: int = 0,
) -> Study:
    """The run that asks each question of all documents of its source together."""
    least = plan.among or (1 if plan.exact else 2)
    corpora = corpora_of(
        documents, per_source, seed, least=least, characters=plan.characters
    )
    questions = {corpus.source: corpus.asked for corpus in corpora}

    def tables(result: Result) -> list[Table]:
        found = [documents_table(result), corpora_table(corpora)]
        return [*found, characters_table(result)] if plan.exact else found

    return Study(
        settings,
        questions,
        seed,
        asks=list(asks_of(settings, corpora, plan)),
        arguments=arguments_of(corpora, questions, plan),
        tested=DOCUMENT_TESTED,
        plan=plan,
        tables=tables,
    )


def asks_of(
    settings: Sequence[Setting], corpora: Sequence[Corpus], plan: Plan
) -> Iterator[Ask]:
    """One `Ask` for each setting and first stage.

    Retrievers that have an index read everything.
    """
    if plan.aggregation == "long" and any(
        setting.unit != "document" for setting in settings
    ):
        raise ValueError(
            '--aggregation: got "long" for units that are parts of documents; expected'
            " --unit document, and a retriever that reads them whole"
        )
    for setting in settings:
        for name in [NO_STAGE] if setting.has_index else plan.first_stages:
            stage = {NO_STAGE: None, WORDS: WORDS}.get(name, Setting(name, "chunk"))
            variants = (f"{plan.read_documents} documents by {name}",) if stage else ()
            asked = replace(setting, variants=variants)
            yield Ask(asked, setting, lambda: corpora, plan, stage, together=True)


def arguments_of(
    corpora: Sequence[Corpus], questions: Questions, plan: Plan
) -> dict[str, object]:
    """The arguments that must be the same when a run resumes."""
    texts = {
        corpus.source: "".join(map(document_digest, corpus.documents))
        for corpus in corpora
    }
    return {
        "questions": digest_of(questions),
        "corpora": {
            source: hashlib.sha256(own.encode()).hexdigest()
            for source, own in texts.items()
        },
        "among": plan.among,
        "document_characters": plan.characters,
        "aggregation": None if plan.aggregation == "max" else plan.aggregation,
        "cutoffs": None if tuple(plan.cutoffs) == CUTOFFS else list(plan.cutoffs),
    }


def digest_of(questions: Questions) -> str:
    """SHA-256 of the questions of a run and of the documents that they are about."""
    digest = hashlib.sha256()
    documents: dict[
        int, str
    ] = {}  # digests by `id`, since a document is asked many questions
    for source, asked in questions.items():
        for document, question in asked:
            if id(document) not in documents:
                documents[id(document)] = document_digest(document)
            content = [
                source,
                document.doc_id,
                question.qid,
                question.text,
                question.evidence,
            ]
            digest.update(json.dumps([*content, documents[id(document)]]).encode())
    return digest.hexdigest()
