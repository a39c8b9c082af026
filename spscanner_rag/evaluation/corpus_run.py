"""Asks a retriever questions over whole corpora and records how well it did on each question."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.evaluation.budget import tokens_at
from spscanner_rag.evaluation.corpora import SourceCorpus
from spscanner_rag.evaluation.corpus_units import CorpusUnits, Shelf
from spscanner_rag.evaluation.costs import PeakMemory
from spscanner_rag.evaluation.first_stage import Reading, asked_of, documents_to_read
from spscanner_rag.evaluation.records import Record, RecordFile
from spscanner_rag.evaluation.run import measure
from spscanner_rag.evaluation.settings import Setting
from spscanner_rag.evidence.coverage import Spans, evidence_sentences
from spscanner_rag.evidence.metrics import CUTOFFS, Measure, ranking_metrics
from spscanner_rag.evidence.sampling import Asked
from spscanner_rag.results.document_score import document_score
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
    """
    total, done = sum(len(corpus.asked) for corpus in corpora), 0
    for corpus in corpora:
        asking = _Asking(setting, scorer, reading, corpus, shelf, count_tokens)
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
        read, scores, seconds = self._scored(question.text, right, units)
        pool, values = units.pool(read, self.count_tokens), np.concatenate([np.zeros(0, np.float32), *scores])
        found = measure(pool, values, units.place(right, evidence))
        record = Record(
            *self.setting.key,
            source=self.corpus.source,
            split=document.split,
            doc_id=document.doc_id,
            qid=question.qid,
            characters=len(document.text),
            metrics=found | document_metrics(scores, [number == right for number in read]),
            tokens={str(k): n for k, n in tokens_at(values, pool.tokens, CUTOFFS).items()},
            seconds=seconds,
            peak_megabytes=memory.megabytes(),
            documents_read=len(read),
            tokens_read=int(pool.tokens.sum()),
        )
        return [record]

    def _scored(
        self, query: str, right: int, units: CorpusUnits
    ) -> tuple[Sequence[int], list[NDArray[np.float32]], float]:
        """The documents read, the logits of their units, and the seconds that a question took."""
        collection = asked_of(self.reading, self.shelf, self.corpus, query, right)
        # Indexes are kept, so the same call makes them before the clock starts.
        documents_to_read(self.reading, self.shelf, self.corpus, query, collection)
        if self.setting.has_index:
            units.scores(self.scorer, query, collection, collection)
        begun = time.perf_counter()
        read = documents_to_read(self.reading, self.shelf, self.corpus, query, collection)
        scores = units.scores(self.scorer, query, read, collection)
        return read, scores, time.perf_counter() - begun


def document_metrics(scores: Sequence[NDArray[np.floating]], right: Sequence[bool]) -> dict[str, float]:
    """Reciprocal rank of the right document, and its recall@1, 5 and 10.

    Parameters
    ----------
    scores : sequence of (units,)
        Of each document that was read; its score is that of its best unit. Among documents of equal score the
        earlier comes first.
    right : sequence of bool
        Whether each is the right one. If none is, since it was not read, all metrics are 0.
    """
    names = {"document_mrr": Measure("mrr", None)}
    names |= {f"document_recall@{k}": Measure("recall", k) for k in DOCUMENT_CUTOFFS}
    if not any(right):
        return dict.fromkeys(names, 0.0)
    best = np.array([document_score(values) for values in scores])
    found = ranking_metrics(best, np.array(right), DOCUMENT_CUTOFFS)
    return {name: found[measured] for name, measured in names.items()}
