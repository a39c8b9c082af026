"""The documents of each source as a collection: those nearest to a question, and its statistics over them."""

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.scan.prepare import Reading
from spscanner_rag.text.collection_index import CollectionIndex
from spscanner_rag.text.lexical import LexicalStatistics, lexical_statistics, own_scores, scores_around
from spscanner_rag.text.words import QueryCounts, query_stems
from spscanner_rag.training.data.document_store import DocumentStore

MOST_UNITS = 60_000
"""A question is asked of random documents of its source with at most this many units, its own always among them;
scoring more takes longer than drawing the rest of the example."""

_WHOLE_SHARE = 1 / 3


class SourceCollections:
    """Word counts of all documents of some sources, sentence by sentence; made once, some 4 s for 14 MB of text.

    Parameters
    ----------
    documents : DocumentStore
    reading : Reading
        Cuts texts into units and says what lexical statistics the model reads.
    sources : collection of str
        The sources to count.
    """

    def __init__(self, documents: DocumentStore, reading: Reading, sources: Collection[str]) -> None:
        self._documents, self._reading = documents, reading
        self._indexes = {source: CollectionIndex() for source in sources}
        self._unit_starts: dict[int, NDArray[np.int32]] = {}
        found: dict[str, list[int]] = {source: [] for source in sources}
        for number in range(len(documents)):
            source = documents.without_text(number).source
            if source in sources:
                units = reading.segmenter.segment(documents.document(number).text)
                self._indexes[source].add(str(number), [unit.model_text for unit in units])
                self._unit_starts[number] = np.array([unit.start for unit in units], np.int32)
                found[source].append(number)
        self._numbers = {source: np.array(numbers, np.int64) for source, numbers in found.items()}

    def unit_starts(self, number: int) -> NDArray[np.int32]:
        """The characters at which the units of document ``number`` start: (units,)."""
        return self._unit_starts[number]

    def ask(self, number: int, query: str, draw: random.Random) -> "AskedSource":
        """Ask a question of the source of document ``number``, or of a random part that includes this document."""
        source = self._documents.without_text(number).source
        counts, numbers = self._indexes[source].count(query_stems(query)), self._numbers[source]
        if counts.n_units > MOST_UNITS:
            own = int(np.searchsorted(numbers, number))
            sizes = np.diff(counts.text_starts, append=counts.n_units)
            order = [own, *draw.sample(sorted(set(range(len(numbers))) - {own}), len(numbers) - 1)]
            fitting = max(1, int(np.searchsorted(np.cumsum(sizes[order]), MOST_UNITS, side="right")))
            texts = np.sort(np.array(order[:fitting]))
            counts, numbers = counts_of_texts(counts, texts), numbers[texts]
        return AskedSource(counts, numbers, self._reading)


@dataclass(frozen=True)
class AskedSource:
    """One question on documents of a source. ``numbers``, (texts,), are theirs in the store, increasing."""

    counts: QueryCounts
    numbers: NDArray[np.int64]
    reading: Reading

    def nearest(self) -> list[int]:
        """Numbers of the documents that share a word with the question, by the score of their best unit."""
        counts = self.counts
        matched = np.unique(np.searchsorted(counts.text_starts, counts.units, side="right") - 1)
        best = np.array([self._scores[self._units(text)].max() for text in matched])
        return [int(self.numbers[text]) for text in matched[np.argsort(-best, kind="stable")]]

    def scores(self, number: int) -> NDArray[np.float64]:
        """Z-scores of document ``number``, the BM25 of each unit and of its surroundings, added: (units,)."""
        return self._scores[self._units(self._text(number))]

    def statistics(self, members: Sequence[int]) -> LexicalStatistics:
        """The question's statistics over the documents ``members``, which are among `numbers`."""
        texts = np.array([self._text(number) for number in sorted(set(members))], np.int64)
        return lexical_statistics(
            counts_of_texts(self.counts, texts),
            surroundings=self.reading.lexical_surroundings,
            least_units=self.reading.lexical_least_units,
        )

    def some(self, members: Collection[int], draw: random.Random) -> list[int]:
        """``members`` and random other documents, up to any number; all documents in a third of the cases.

        A collection twice as large is drawn as often as one half as large: the logarithm of the number is uniform.
        """
        least, most = max(2, len(members)), len(self.numbers)
        reach = draw.random() / (1 - _WHOLE_SHARE)
        wanted = min(most, round(least * (most / least) ** reach)) if most > least else most
        others = sorted(set(self.numbers.tolist()) - set(members))
        return [*members, *draw.sample(others, max(0, wanted - len(members)))]

    @cached_property
    def _scores(self) -> NDArray[np.float64]:
        """Sum of the z-scores of the BM25 of each unit and of its surroundings: (units,)."""
        statistics = lexical_statistics(self.counts, surroundings=True)
        scores = statistics.own.standardize(own_scores(self.counts, statistics.idf, statistics.mean_words))
        around = scores_around(self.counts, statistics.idf, statistics.mean_words_around)
        for moments, values in zip(statistics.around, around, strict=True):
            scores += moments.standardize(values)
        return scores

    def _text(self, number: int) -> int:
        return int(np.searchsorted(self.numbers, number))

    def _units(self, text: int) -> slice:
        starts = self.counts.text_starts
        stop = int(starts[text + 1]) if text + 1 < len(starts) else self.counts.n_units
        return slice(int(starts[text]), stop)


def counts_of_texts(counts: QueryCounts, texts: NDArray[np.int64]) -> QueryCounts:
    """The counts of some texts, given by their places among all, (texts,), increasing."""
    first = counts.text_starts[texts]
    stop = np.append(counts.text_starts, np.int64(counts.n_units))[texts + 1]
    starts = np.cumsum(stop - first) - (stop - first)
    first_pair, stop_pair = np.searchsorted(counts.units, first), np.searchsorted(counts.units, stop)
    pairs, units = _ranges(first_pair, stop_pair), _ranges(first, stop)
    shift = np.repeat(starts - first, stop_pair - first_pair)
    return QueryCounts(
        counts.units[pairs] + shift,
        counts.stems[pairs],
        counts.times[pairs],
        counts.n_stems,
        counts.words_per_unit[units],
        starts,
    )


def _ranges(first: NDArray[np.int64], stop: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers of several ranges, one after the other."""
    ranges = [np.arange(a, b) for a, b in zip(first.tolist(), stop.tolist(), strict=True)]
    return np.concatenate([np.zeros(0, np.int64), *ranges])
