"""A run that asks questions of whole corpora: what each setting is asked, and the result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from spscanner_rag.lab.evaluation.corpora import SourceCorpus, corpora_of
from spscanner_rag.lab.evaluation.corpus_run import run_on_corpora
from spscanner_rag.lab.evaluation.corpus_units import Shelf
from spscanner_rag.lab.evaluation.first_stage import Reading
from spscanner_rag.lab.evaluation.records import Record, RecordFile
from spscanner_rag.lab.evaluation.report.corpus_table import corpora_table, documents_table
from spscanner_rag.lab.evaluation.report.result import Result
from spscanner_rag.lab.evaluation.report.rows import differences_of, rows_of
from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.lab.evaluation.study import check_distinct, digest_of
from spscanner_rag.lab.evidence.metrics import CUTOFFS
from spscanner_rag.lab.evidence.questions import Document
from spscanner_rag.results.document_score import Aggregation
from spscanner_rag.scorers import Progress, Scorer
from spscanner_rag.text.token_counts import CountTokens

NO_STAGE, WORDS = "none", "bm25"
"""First stages that are no retriever: all documents are read; those that the index of words ranks first are."""

TESTED, TESTED_ACROSS = ("document_mrr", "recall@10"), ("document_mrr", "recall_at_tokens@1000")
"""Metrics of the paired tests, between retrievers of the same unit and across units."""


@dataclass(frozen=True)
class CorpusAsk:
    """The arguments of one call of `run_on_corpora`.

    ``stage`` is the setting whose scorer is the first stage, if a retriever is.
    """

    setting: Setting
    scorer: Setting
    reading: Reading
    corpora: Sequence[SourceCorpus]
    shelf: Shelf
    stage: Setting | None = None
    cutoffs: Sequence[int] = CUTOFFS
    aggregation: Aggregation = "max"

    def loaded(self, scorers: Mapping[Setting, Scorer]) -> tuple[Scorer, Reading]:
        """The scorer that is asked, and how the documents that it reads are chosen."""
        reading = self.reading
        if self.stage is not None:
            reading = replace(reading, first_stage=scorers[self.stage])
        return scorers[self.scorer], reading

    def run(
        self,
        scorers: Mapping[Setting, Scorer],
        titles: dict[str, str],
        count_tokens: CountTokens,
        file: RecordFile,
        progress: Progress | None = None,
    ) -> None:
        """Ask all questions that have no record; ``titles`` gets the titles of all documents by their texts."""
        titles.update((d.text, d.title) for corpus in self.corpora for d in corpus.documents)
        scorer, reading = self.loaded(scorers)
        run_on_corpora(
            self.setting,
            scorer,
            reading,
            self.corpora,
            self.shelf,
            count_tokens,
            file,
            progress,
            cutoffs=self.cutoffs,
            aggregation=self.aggregation,
        )


@dataclass(frozen=True)
class CorpusStudy:
    """Every setting is asked all questions, each of all documents of its source, or of the hardest of them.

    Attributes
    ----------
    settings
        Plain settings, in the order of the tables.
    corpora
        From `corpora_of`.
    seed
        Of the intervals.
    first_stages
        Each is "none" (read everything), "bm25" or the name of a retriever. Retrievers that have an index read
        everything.
    read_documents
        The most documents that are read after a first stage.
    among
        See `Reading`.
    characters
        The length that documents were cut to.
    cutoffs
        Numbers of units for the metrics of evidence.
    aggregation
        What scores a document by its units; see `document_score`.
    """

    settings: Sequence[Setting]
    corpora: Sequence[SourceCorpus]
    seed: int
    first_stages: Sequence[str] = (NO_STAGE,)
    read_documents: int = 10
    among: int | None = None
    characters: int | None = None
    shelf: Shelf = field(default_factory=Shelf)
    cutoffs: Sequence[int] = CUTOFFS
    aggregation: Aggregation = "max"

    @property
    def arguments(self) -> dict[str, object]:
        """What must not change before the run resumes."""
        return {
            "questions": digest_of({corpus.source: corpus.asked for corpus in self.corpora}),
            "corpora": {corpus.source: corpus.digest for corpus in self.corpora},
            "among": self.among,
            "document_characters": self.characters,
            "aggregation": None if self.aggregation == "max" else self.aggregation,
            "cutoffs": None if tuple(self.cutoffs) == CUTOFFS else list(self.cutoffs),
        }

    @property
    def stages(self) -> list[Setting]:
        """The settings whose scorers are first stages."""
        return [Setting(name, "chunk") for name in self.first_stages if name not in (NO_STAGE, WORDS)]

    @property
    def asks(self) -> list[CorpusAsk]:
        """One for each setting and first stage."""
        return [
            self._ask(setting, name)
            for setting in self.settings
            for name in ([NO_STAGE] if setting.has_index else self.first_stages)
        ]

    def _ask(self, setting: Setting, stage: str) -> CorpusAsk:
        if stage == NO_STAGE:
            return self._asking(setting, setting, Reading(self.among))
        staged = setting.varied(f"{self.read_documents} documents by {stage}")
        reading = Reading(self.among, WORDS, self.read_documents)
        own = None if stage == WORDS else Setting(stage, "chunk")
        return self._asking(staged, setting, reading, own)

    def _asking(
        self, setting: Setting, scorer: Setting, reading: Reading, stage: Setting | None = None
    ) -> CorpusAsk:
        told = (self.corpora, self.shelf, stage, self.cutoffs, self.aggregation)
        return CorpusAsk(setting, scorer, reading, *told)

    def result(self, records: Sequence[Record]) -> Result:
        """Tables of the documents and of the evidence found, and the first setting against the others."""
        settings = [ask.setting for ask in self.asks]
        rows = rows_of(records, settings, self.seed)
        pairs = [(settings[0], other) for other in settings[1:]]
        differences = differences_of(records, pairs, self.seed, same_unit=TESTED, across=TESTED_ACROSS)
        tables = [documents_table(rows, settings), corpora_table(self.corpora)]
        return Result(rows, differences, settings, tables=tables, cutoffs=self.cutoffs)


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
) -> CorpusStudy:
    """The run that a command line asks for; see `CorpusStudy` and `corpora_of`.

    Raises
    ------
    ValueError
        For an ``among`` below 2 or larger than a source, for `check_long`, and the errors of `corpora_of`.
    """
    if among is not None and among < 2:
        raise ValueError(f"--among: got {among} documents; expected at least 2, the right one and another")
    check_long(settings, aggregation)
    check_distinct(documents)
    corpora = corpora_of(documents, per_source, seed, least=among or 2, characters=characters)
    return CorpusStudy(
        settings,
        corpora,
        seed,
        first_stages,
        read_documents,
        among,
        characters,
        cutoffs=cutoffs,
        aggregation=aggregation,
    )


def check_long(settings: Sequence[Setting], aggregation: Aggregation) -> None:
    """Raise ``ValueError`` for the aggregation "long" of units that are not whole documents."""
    if aggregation == "long" and any(setting.unit != "document" for setting in settings):
        raise ValueError(
            '--aggregation: got "long" for units that are parts of documents; expected --unit document, and a '
            "retriever that reads them whole"
        )
