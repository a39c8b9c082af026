"""Asks a retriever questions over whole corpora and records how well it did on each question."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.baselines.cascade import Staged
from spscanner_rag.lab.evaluation.budget import tokens_at
from spscanner_rag.lab.evaluation.corpora import SourceCorpus
from spscanner_rag.lab.evaluation.corpus_units import Shelf
from spscanner_rag.lab.evaluation.costs import PeakMemory, index_megabytes
from spscanner_rag.lab.evaluation.first_stage import Reading, asked_of, documents_to_read
from spscanner_rag.lab.evaluation.records import Record, RecordFile
from spscanner_rag.lab.evaluation.run import measure
from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.lab.evidence.metrics import CUTOFFS, Measure, ranking_metrics
from spscanner_rag.lab.evidence.sampling import Asked
from spscanner_rag.results.coverage import Spans, evidence_sentences
from spscanner_rag.results.document_score import Aggregation, document_score
from spscanner_rag.scorers import Progress, Scorer
from spscanner_rag.text.token_counts import CountTokens

DOCUMENT_CUTOFFS = (1, 5, 10)


def run_on_corpora(
    setting: Setting,
    scorer: Scorer,
    reading: Reading,
    corpora: Sequence[SourceCorpus],
    shelf: Shelf,
    count_tokens: CountTokens,
    file: RecordFile,
    progress: Progress | None = None,
    *,
    cutoffs: Sequence[int] = CUTOFFS,
    aggregation: Aggregation = "max",
) -> None:
    """Ask a retriever all questions that have no record in the file, each of its corpus.

    Parameters
    ----------
    setting, scorer
        The setting that the records name, and its loaded retriever.
    reading
        Which documents are read.
    corpora
        From `corpora_of`.
    shelf
        Cuts the corpora; use the same for all settings.
    count_tokens
        Counts the tokens of a text; use the same function for all settings.
    file
        Receives the records.
    progress
        Called with the number of questions done and of all questions.
    cutoffs
        Numbers of units for the metrics of evidence.
    aggregation
        What scores a document by its units.
    """
    total, done = sum(len(corpus.asked) for corpus in corpora), 0
    for corpus in corpora:
        asking = _Asking(setting, scorer, reading, corpus, shelf, count_tokens, cutoffs, aggregation)
        for asked in corpus.asked:
            if asking.key(asked) not in file.records:
                file.add(asking.records(asked))
            done += 1
            if progress is not None:
                progress(done, total)


@dataclass(frozen=True)
class _Asking:
    setting: Setting
    scorer: Scorer
    reading: Reading
    corpus: SourceCorpus
    shelf: Shelf
    count_tokens: CountTokens
    cutoffs: Sequence[int]
    aggregation: Aggregation

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each document by its id."""
        return {document.doc_id: number for number, document in enumerate(self.corpus.documents)}

    def key(self, asked: Asked) -> tuple[str, ...]:
        """The key of the record."""
        document, question = asked
        return *self.setting.key, self.corpus.source, document.doc_id, question.qid

    def records(self, asked: Asked) -> list[Record]:
        """The record of a question; none if its evidence is only white space, which has no sentence."""
        document, question = asked
        right = self.numbers[document.doc_id]
        sentences = Spans.of(self.shelf.units(self.corpus, "sentence").units(right))
        evidence = evidence_sentences(sentences, question.evidence)
        if not len(evidence.starts):
            return []
        memory, units = PeakMemory(), self.shelf.units(self.corpus, self.setting.unit)
        collection = asked_of(self.reading, self.shelf, self.corpus, question.text, right)
        read, scores, seconds, megabytes = timed_scores(
            self.setting, self.scorer, self.reading, self.shelf, self.corpus, question.text, collection
        )
        pool, values = units.pool(read, self.count_tokens), np.concatenate([np.zeros(0, np.float32), *scores])
        found = measure(pool, values, units.place(right, evidence), self.cutoffs)
        record = Record(
            *self.setting.key,
            source=self.corpus.source,
            split=document.split,
            doc_id=document.doc_id,
            qid=question.qid,
            characters=len(document.text),
            metrics=found | document_metrics(scores, [number == right for number in read], self.aggregation),
            tokens={str(k): n for k, n in tokens_at(values, pool.tokens, self.cutoffs).items()},
            seconds=seconds,
            index_megabytes=megabytes,
            peak_megabytes=memory.megabytes(),
            documents_read=len(read),
            tokens_read=int(pool.tokens.sum()),
        )
        return [record]


class Timed(NamedTuple):
    """What a question was scored on, the scores, and what they cost."""

    read: Sequence[int]  # numbers of the documents that were read
    logits: list[NDArray[np.float32]]  # (units,) of each
    seconds: float
    index_megabytes: float


def timed_scores(
    setting: Setting,
    scorer: Scorer,
    reading: Reading,
    shelf: Shelf,
    corpus: SourceCorpus,
    query: str,
    collection: Sequence[int],
) -> Timed:
    """Score the documents that are read for a question that is asked of ``collection``."""
    units = shelf.units(corpus, setting.unit)
    # Indexes are kept, so the same call makes them before the clock starts.
    documents_to_read(reading, shelf, corpus, query, collection)
    if setting.has_index:
        indexed = scorer.scorers[0] if isinstance(scorer, Staged) else scorer
        units.scores(indexed, query, collection, collection)
    begun = time.perf_counter()
    read = documents_to_read(reading, shelf, corpus, query, collection)
    scores = units.scores(scorer, query, read, collection)
    seconds = time.perf_counter() - begun
    return Timed(read, scores, seconds, index_megabytes(scorer, units, collection))


def document_metrics(
    scores: Sequence[NDArray[np.floating]], right: Sequence[bool], aggregation: Aggregation = "max"
) -> dict[str, float]:
    """Reciprocal rank of the right document, and its recall@1, 5 and 10.

    Parameters
    ----------
    scores : sequence of (units,)
        Of each document that was read. Among documents of equal score the earlier comes first.
    right : sequence of bool
        Whether each is the right one. If none is, since it was not read, all metrics are 0.
    aggregation : str, default "max"
        What scores a document by its units; see `document_score`.
    """
    names = {"document_mrr": Measure("mrr", None)}
    names |= {f"document_recall@{k}": Measure("recall", k) for k in DOCUMENT_CUTOFFS}
    if not any(right):
        return dict.fromkeys(names, 0.0)
    best = np.array([document_score(values, aggregation) for values in scores])
    found = ranking_metrics(best, np.array(right), DOCUMENT_CUTOFFS)
    return {name: found[measured] for name, measured in names.items()}
