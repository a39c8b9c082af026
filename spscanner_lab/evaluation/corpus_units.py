"""The documents of a corpus cut into units, their scores, and pools of units."""

from collections.abc import Sequence
from functools import cached_property
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_lab.evaluation.document_starts import document_starts
from spscanner_lab.evidence.questions import Document
from spscanner_rag.baselines.unit_kinds import segmenter_of
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.results.coverage import Spans
from spscanner_rag.scan.prepared_document import PreparedDocument
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Scorer, UnitScores, score_batch
from spscanner_rag.text.token_counts import CountTokens
from spscanner_rag.text.units import Segmenter, Unit

MOST_PREPARED_BYTES = 2**30
"""The most memory for documents that a scanner prepared, of each corpus."""


class UnitPool(NamedTuple):
    """The units of several documents, ranked together."""

    spans: Spans  # in the corpus, with its documents laid end to end
    tokens: NDArray[np.int64]  # (units,)


def segmenter_for(unit: str, scorer: Scorer | None = None) -> Segmenter:
    """The segmenter for a kind of unit and a scorer.

    For "sentence" it is that of the scanner in the scorer, since published scanners
    differ. "document:N" is the first N tokens of a document as one unit.

    Examples
    --------
    >>> from spscanner_lab.evaluation.corpus_units import segmenter_for
    >>> units = segmenter_for("chunk:2").segment("It rained all day.")
    >>> [unit.model_text for unit in units]
    ['It rained ', 'all day.']
    """
    if unit == "sentence" and scorer is not None and scorer.segmenter is not None:
        return scorer.segmenter
    kind, _, tokens = unit.partition(":")
    if kind == "document" and tokens:
        return document_starts(int(tokens))
    return segmenter_of(unit)  # type: ignore[arg-type]  # it checks the unit


class CorpusUnits:
    """The documents of a corpus by number, each cut when it is first needed."""

    def __init__(self, documents: Sequence[Document], segmenter: Segmenter) -> None:
        self.documents = documents
        self.every = range(len(documents))
        lengths = [len(document.text) for document in documents]
        self._segmenter = segmenter
        self._offsets = np.cumsum([0, *lengths])
        self._units_by_number: dict[int, Sequence[Unit]] = {}
        self._pools_by_number: dict[int, UnitPool] = {}
        self._prepared: dict[tuple[Scanner, int], PreparedDocument] = {}
        self._prepared_bytes = 0

    def units(self, number: int) -> Sequence[Unit]:
        """The units of one document."""
        if number not in self._units_by_number:
            text = self.documents[number].text
            self._units_by_number[number] = self._segmenter.segment(text)
        return self._units_by_number[number]

    def scores(
        self,
        scorer: Scorer,
        queries: Sequence[str],
        numbers: Sequence[int],
        collection: Sequence[int] | None = None,
    ) -> list[list[UnitScores]]:
        """The scores of the units of these documents, for each query.

        ``collection`` has the documents whose word counts the scorer gets; None if each
        document is asked alone.
        """
        index = None
        if collection is not None and scorer.uses_collection:
            index = self.index(collection)
        requests = []
        for query in queries:
            requests += [(query, number) for number in numbers]
        if isinstance(scorer, Scanner):
            scores = iter(self._scores_of_scanner(scorer, requests, index))
        else:
            scores = iter(self._scores_of_others(scorer, requests, index))
        scores_by_query = []
        for _ in queries:
            scores_by_query.append(list(islice(scores, len(numbers))))
        return scores_by_query

    def _scores_of_others(
        self,
        scorer: Scorer,
        requests: Sequence[tuple[str, int]],
        index: CollectionIndex | None,
    ) -> list[UnitScores]:
        requests_with_units = []
        for query, number in requests:
            text = self.documents[number].text
            requests_with_units.append((query, text, self.units(number)))
        return score_batch(scorer, requests_with_units, collection=index)

    def _scores_of_scanner(
        self,
        scanner: Scanner,
        requests: Sequence[tuple[str, int]],
        index: CollectionIndex | None,
    ) -> list[UnitScores]:
        """The scores by a scanner, which prepares a document once for all questions."""
        pairs = []
        for query, number in requests:
            pairs.append((query, self._prepared_document(scanner, number)))
        scores = []
        for result in scanner.scan_many(pairs, collection=index):
            answerable = result.answerable
            if not len(result.logits):
                answerable = 0.0 if scanner.says_answers else None
            scores.append(UnitScores(result.logits, answerable))
        return scores

    def _prepared_document(self, scanner: Scanner, number: int) -> PreparedDocument:
        """A document as a scanner prepares it.

        The latest ones stay in memory.
        """
        key = (scanner, number)
        document = self._prepared.pop(key, None)
        if document is None:
            text = self.documents[number].text
            document = scanner.prepare(text, units=self.units(number))
            self._prepared_bytes += document.nbytes
        self._prepared[key] = document  # it is the latest now
        while self._prepared_bytes > MOST_PREPARED_BYTES and len(self._prepared) > 1:
            earliest = next(iter(self._prepared))
            self._prepared_bytes -= self._prepared.pop(earliest).nbytes
        return document

    def index(self, numbers: Sequence[int]) -> CollectionIndex:
        """The words of these documents.

        A document's key is its place among ``numbers``, such as "0".
        """
        if numbers == self.every:
            return self._index_of_all
        return CollectionIndex.of(map(self._model_texts, numbers))

    @cached_property
    def _index_of_all(self) -> CollectionIndex:
        return self.index(list(self.every))

    def _model_texts(self, number: int) -> list[str]:
        return [unit.model_text for unit in self.units(number)]

    def pool(self, numbers: Sequence[int], count_tokens: CountTokens) -> UnitPool:
        """The units of these documents together.

        Always pass the same ``count_tokens``, since counts are kept.
        """
        starts = [np.zeros(0, np.int64)]
        ends = [np.zeros(0, np.int64)]
        tokens = [np.zeros(0, np.int64)]
        for number in numbers:
            pool = self._pool_of(number, count_tokens)
            starts.append(pool.spans.starts)
            ends.append(pool.spans.ends)
            tokens.append(pool.tokens)
        spans = Spans(np.concatenate(starts), np.concatenate(ends))
        return UnitPool(spans, np.concatenate(tokens))

    def _pool_of(self, number: int, count_tokens: CountTokens) -> UnitPool:
        if number not in self._pools_by_number:
            text = self.documents[number].text
            units = self.units(number)
            counts = [count_tokens(text[unit.start : unit.end]) for unit in units]
            spans = self.place(number, Spans.of(units))
            pool = UnitPool(spans, np.array(counts, np.int64))
            self._pools_by_number[number] = pool
        return self._pools_by_number[number]

    def place(self, number: int, spans: Spans) -> Spans:
        """Move spans of a document to its place among documents laid end to end."""
        offset = self._offsets[number]
        return Spans(spans.starts + offset, spans.ends + offset)
