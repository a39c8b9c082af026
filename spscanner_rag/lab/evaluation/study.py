"""Studies: which questions a run asks of each setting, and how it turns the records into a result."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from spscanner_rag.lab.evaluation.calibration import calibration_rows, calibration_tables
from spscanner_rag.lab.evaluation.corpora import Corpus, Reading, corpora_of
from spscanner_rag.lab.evaluation.records import Record
from spscanner_rag.lab.evaluation.result import Result, characters_table, corpora_table, documents_table
from spscanner_rag.lab.evaluation.rows import TESTED, TESTED_ACROSS, differences_of, rows_of
from spscanner_rag.lab.evaluation.run import Ask, documents_alone
from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.lab.evidence.calibration import THRESHOLD
from spscanner_rag.lab.evidence.metrics import CUTOFFS
from spscanner_rag.lab.evidence.questions import Document, QuestionPlaces, document_digest
from spscanner_rag.lab.evidence.sampling import Asked, sample_questions
from spscanner_rag.results.document_score import Aggregation

Questions = Mapping[str, Sequence[Asked]]  # by source, from `sample_questions`

NO_STAGE, WORDS = "none", "bm25"
"""First stages that are no retriever: all documents are read; those that the index of words ranks first are."""

DOCUMENT_TESTED = ("document_mrr", "recall@10"), ("document_mrr", "recall_at_tokens@1000")
"""Metrics of the paired tests on corpora, between retrievers of the same unit and across units."""


@dataclass(frozen=True)
class Study:
    """A run: what each setting is asked, and what is made of the records."""

    kind: Literal["documents", "corpora", "judged"]  # what questions are asked of
    settings: Sequence[Setting]  # plain ones, in the order of the tables
    questions: Questions
    seed: int  # of the intervals
    asks: Sequence[Ask]
    arguments: Mapping[str, object]  # what must not change before the run resumes
    pairs: Sequence[tuple[Setting, Setting]]  # that are compared
    tested: tuple[Sequence[str], Sequence[str]] = (TESTED, TESTED_ACROSS)  # metrics, of one unit and across
    cutoffs: Sequence[int] = CUTOFFS  # numbers of units for the metrics of evidence
    stages: Sequence[Setting] = ()  # whose scorers are first stages
    completed: Callable[[Result, Sequence[Record]], Result] = lambda result, records: result  # adds tables

    def result(self, records: Sequence[Record]) -> Result:
        """Tables of metrics, paired tests, and what the kind of the study adds."""
        settings = [ask.setting for ask in self.asks]
        answerable = [record for record in records if record.answerable]
        rows = rows_of(answerable, settings, self.seed)
        same_unit, across = self.tested
        differences = differences_of(answerable, self.pairs, self.seed, same_unit=same_unit, across=across)
        return self.completed(Result(rows, differences, settings, cutoffs=self.cutoffs), records)


def study_of(
    settings: Sequence[Setting],
    documents: Sequence[Document],
    per_source: int | None = None,
    seed: int = 0,
    *,
    calibration: bool = False,
    cutoffs: Sequence[int] = CUTOFFS,
    answered: bool = False,
) -> Study:
    """The run that a command line asks for, on single documents; ``ValueError`` if it asks nothing.

    ``answered``: also questions without evidence, for which there are right answers to compare with.
    """
    if calibration and not any(setting.has_probabilities for setting in settings):
        raise ValueError(
            f"--calibration: got {', '.join(setting.label for setting in settings)}, whose scores are not "
            "probabilities; expected a scanner among --retrievers"
        )
    check_distinct(documents)
    questions = sample_questions(documents, per_source, seed, answered=answered)
    if not questions:
        wanted = "evidence or answers" if answered else "evidence"
        raise ValueError(f"the data have no answerable question with {wanted}; expected at least one")
    changed = {} if tuple(cutoffs) == CUTOFFS else {"cutoffs": list(cutoffs)}
    plain = Study(
        "documents",
        settings,
        questions,
        seed,
        asks=[_ask(setting, setting, questions, cutoffs) for setting in settings],
        arguments={"questions": digest_of(questions), **changed},
        pairs=first_against_others(settings),
        cutoffs=cutoffs,
    )
    if calibration:
        unanswerable = sample_questions(documents, per_source, seed, answerable=False)
        return _calibrated(plain, unanswerable)
    return plain


def first_against_others(settings: Sequence[Setting]) -> list[tuple[Setting, Setting]]:
    """The pairs of settings that are compared."""
    return [(settings[0], other) for other in settings[1:]]


def _ask(
    setting: Setting, scorer: Setting, questions: Questions, cutoffs: Sequence[int], calibrate: bool = False
) -> Ask:
    corpora = partial(documents_alone, questions)
    return Ask(setting, scorer, corpora, _number(questions), calibrate=calibrate, cutoffs=cutoffs)


def _number(questions: Questions) -> int:
    return sum(map(len, questions.values()))


def _calibrated(plain: Study, unanswerable: Questions) -> Study:
    """A study whose settings with probabilities are also asked unanswerable questions, in the same call."""
    sources = sorted({*plain.questions, *unanswerable})
    both = {s: [*plain.questions.get(s, ()), *unanswerable.get(s, ())] for s in sources}
    calibrated = [setting for setting in plain.settings if setting.has_probabilities]
    left_out = [setting.label for setting in plain.settings if not setting.has_probabilities]

    def completed(result: Result, records: Sequence[Record]) -> Result:
        rows = calibration_rows(records, calibrated, plain.seed)
        content = {"threshold": THRESHOLD, "left_out": left_out, "rows": rows}
        tables = calibration_tables(rows, left_out)
        return replace(result, tables=tables, files={"calibration.json": content})

    asks = [
        _ask(setting, setting, both, plain.cutoffs, calibrate=True) if setting in calibrated else ask
        for setting, ask in zip(plain.settings, plain.asks, strict=True)
    ]
    arguments = {**plain.arguments, "calibration": digest_of(unanswerable)}
    return replace(plain, asks=asks, arguments=arguments, completed=completed)


def corpus_study_of(
    settings: Sequence[Setting],
    documents: Sequence[Document],
    per_source: int | None = None,
    seed: int = 0,
    *,
    first_stages: Sequence[str] = (NO_STAGE,),
    read_documents: int = 10,
    among: int | None = None,
    characters: int | None = None,
    cutoffs: Sequence[int] = CUTOFFS,
    aggregation: Aggregation = "max",
    exact: bool = False,
) -> Study:
    """The run that asks each question of all documents of its source, or of the hardest ``among`` of them.

    Each first stage is "none" (read everything), "bm25" or the name of a retriever; after it at most
    ``read_documents`` are read. Retrievers that have an index read everything. ``exact``: evidence is measured by
    characters, too.
    """
    if among is not None and among < 2:
        raise ValueError(f"--among: got {among} documents; expected at least 2, the right one and another")
    check_long(settings, aggregation)
    check_distinct(documents)
    corpora = corpora_of(documents, per_source, seed, least=among or 2, characters=characters)
    questions = {corpus.source: corpus.asked for corpus in corpora}
    asks = list(asks_of_corpora(
        settings, corpora, first_stages, read_documents, among, cutoffs=cutoffs, aggregation=aggregation
    ))  # fmt: skip
    asked = [ask.setting for ask in asks]

    def completed(result: Result, records: Sequence[Record]) -> Result:
        exactly = [characters_table(result.rows, asked)] if exact else []
        tables = [documents_table(result.rows, asked), corpora_table(corpora), *exactly]
        return replace(result, tables=tables)

    return Study(
        "corpora",
        settings,
        questions,
        seed,
        asks=[replace(ask, exact=exact) for ask in asks],
        arguments=arguments_of(corpora, among, characters, cutoffs, aggregation),
        pairs=first_against_others(asked),
        tested=DOCUMENT_TESTED,
        cutoffs=cutoffs,
        stages=stages_of(first_stages),
        completed=completed,
    )


def asks_of_corpora(
    settings: Sequence[Setting],
    corpora: Sequence[Corpus],
    first_stages: Sequence[str],
    read_documents: int,
    among: int | None = None,
    *,
    cutoffs: Sequence[int] = CUTOFFS,
    aggregation: Aggregation = "max",
) -> Iterator[Ask]:
    """One for each setting and first stage."""
    questions = sum(len(corpus.asked) for corpus in corpora)
    for setting in settings:
        for name in [NO_STAGE] if setting.has_index else first_stages:
            asked, reading = setting, Reading(among)
            if name != NO_STAGE:
                asked = setting.varied(f"{read_documents} documents by {name}")
                reading = Reading(among, WORDS, read_documents)
            yield Ask(
                asked,
                setting,
                lambda: corpora,
                questions,
                reading,
                stage=next(iter(stages_of([name])), None),
                cutoffs=cutoffs,
                aggregation=aggregation,
            )


def stages_of(first_stages: Sequence[str]) -> list[Setting]:
    """The settings whose scorers are first stages."""
    return [Setting(name, "chunk") for name in first_stages if name not in (NO_STAGE, WORDS)]


def arguments_of(
    corpora: Sequence[Corpus],
    among: int | None,
    characters: int | None,
    cutoffs: Sequence[int],
    aggregation: Aggregation,
) -> dict[str, object]:
    """What must not change before a run on corpora resumes."""
    return {
        "questions": digest_of({corpus.source: corpus.asked for corpus in corpora}),
        "corpora": {corpus.source: corpus.digest for corpus in corpora},
        "among": among,
        "document_characters": characters,
        "aggregation": None if aggregation == "max" else aggregation,
        "cutoffs": None if tuple(cutoffs) == CUTOFFS else list(cutoffs),
    }


def check_long(settings: Sequence[Setting], aggregation: Aggregation) -> None:
    """Raise ``ValueError`` for the aggregation "long" of units that are not whole documents."""
    if aggregation == "long" and any(setting.unit != "document" for setting in settings):
        raise ValueError(
            '--aggregation: got "long" for units that are parts of documents; expected --unit document, and a '
            "retriever that reads them whole"
        )


def check_distinct(documents: Iterable[Document]) -> None:
    """Raise ``ValueError`` for two questions whose records have the same key: one would count for both."""
    places = QuestionPlaces()
    for number, document in enumerate(documents, 1):
        if repeated := places.add(document, f"document {number}"):
            raise ValueError(
                f"got {repeated.name} more than once; expected each once: give each document an id of its own "
                "in its source"
            )


def digest_of(questions: Questions) -> str:
    """SHA-256 of the questions of a run, and of the documents that they are asked on."""
    digest = hashlib.sha256()
    documents: dict[int, str] = {}  # their digests by `id`: each is asked many questions
    for source, asked in questions.items():
        for document, question in asked:
            if id(document) not in documents:
                documents[id(document)] = document_digest(document)
            content = [source, document.doc_id, question.qid, question.text, question.evidence]
            digest.update(json.dumps([*content, documents[id(document)]]).encode())
    return digest.hexdigest()
