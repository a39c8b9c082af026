"""The documents of each source as a collection: those nearest to a question, and its statistics over them."""

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lab.training.data.documents import DocumentStore
from spscanner_rag.lexical.collection_index import CollectionIndex, TextRanking
from spscanner_rag.lexical.match import LexicalStatistics, MatchOptions, QueryOnWords, lexical_scores
from spscanner_rag.lexical.postings import kept_texts
from spscanner_rag.scan.prepare import Reading

MOST_UNITS = 100_000
"""A larger source is divided into collections of about this many units, each with documents from all over it;
asking a question of more would take longer than drawing the rest of an example."""

_WHOLE_SHARE = 1 / 3


class SourceCollections:
    """Word counts of all documents of some sources, by sentence; made once, some 4 s for 14 MB of text."""

    def __init__(self, documents: DocumentStore, reading: Reading, sources: Collection[str]) -> None:
        self._reading = reading
        self._unit_starts: dict[int, NDArray[np.int32]] = {}
        self._collection_of: dict[int, _Collection] = {}  # by document
        numbers_of: dict[str, list[int]] = {}
        for number in range(len(documents)):
            numbers_of.setdefault(documents.without_text(number).source, []).append(number)
        for source in sources:
            texts = {}
            for number in numbers_of.get(source, ()):
                units = reading.segmenter.segment(documents.document(number).text)
                texts[number] = [unit.model_text for unit in units]
                self._unit_starts[number] = np.array([unit.start for unit in units], np.int32)
            parts = -(-sum(map(len, texts.values())) // MOST_UNITS)
            for part in range(parts):
                numbers = list(texts)[part::parts]
                index = CollectionIndex()
                for number in numbers:
                    index.add(str(number), texts[number])
                collection = _Collection(index, np.array(numbers, np.int64))
                self._collection_of.update(dict.fromkeys(numbers, collection))

    def unit_starts(self, number: int) -> NDArray[np.int32]:
        """The characters at which the units of document ``number`` start: (units,)."""
        return self._unit_starts[number]

    def ask(self, number: int, query: str) -> "AskedSource":
        """Ask a question of the source of document ``number``, or of the part of it that has this document."""
        collection, options = self._collection_of[number], self._reading.match_options
        return AskedSource(collection.index.asked(query, options.vectors), collection.numbers, options)


@dataclass(frozen=True)
class _Collection:
    index: CollectionIndex
    numbers: NDArray[np.int64]  # (texts,) of its documents, increasing


@dataclass(frozen=True)
class AskedSource:
    """One question on documents of a source. ``numbers``, (texts,), are theirs in the store, increasing."""

    asked: QueryOnWords
    numbers: NDArray[np.int64]
    options: MatchOptions

    def nearest(self) -> list[int]:
        """Numbers of the documents that share a word with the question, by the score of their best unit."""
        return [int(number) for number in self.numbers[self._ranking.texts]]

    def scores(self, number: int) -> NDArray[np.float64]:
        """Scores of the units of document ``number``, as for `TextRanking`: (units,)."""
        return self._ranking.scores_of(int(np.searchsorted(self.numbers, number)))

    def statistics(self, members: Sequence[int]) -> LexicalStatistics:
        """The question's statistics over the documents ``members``, which are among `numbers`."""
        kept = np.isin(self.numbers, members)  # (texts,)
        if kept.all():
            return lexical_scores(self.asked, self.options).statistics
        sizes = [len(part.text_stops) - 1 for part in self.asked.parts]
        masks = np.split(kept, np.cumsum(sizes)[:-1])
        parts = [kept_texts(part, mask) for part, mask in zip(self.asked.parts, masks, strict=True)]
        return lexical_scores(replace(self.asked, parts=parts), self.options).statistics

    def some(self, members: Collection[int], draw: random.Random) -> list[int]:
        """``members`` and random other documents, a log-uniform number; all documents in a third of the cases."""
        least, most = max(2, len(members)), len(self.numbers)
        reach = draw.random() / (1 - _WHOLE_SHARE)
        wanted = min(most, round(least * (most / least) ** reach)) if most > least else most
        others = sorted(set(self.numbers.tolist()) - set(members))
        return [*members, *draw.sample(others, max(0, wanted - len(members)))]

    @cached_property
    def _ranking(self) -> TextRanking:
        return TextRanking.of(self.asked)
