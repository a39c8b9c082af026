"""The documents of a corpus, cut into units and counted once for all of its questions."""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.baselines.units import UnitKind, segmenter_of
from spscanner_rag.lab.evaluation.corpora import SourceCorpus
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.results.coverage import Spans
from spscanner_rag.scorers import Scorer, score_batch
from spscanner_rag.text.token_counts import CountTokens
from spscanner_rag.text.units import Unit


class Pool(NamedTuple):
    """The units of several documents, ranked together."""

    spans: Spans  # where the documents of the corpus are laid end to end
    tokens: NDArray[np.int64]  # (units,)


class CorpusUnits:
    """The documents of a corpus, each cut into units when it is first asked for.

    Documents go by their numbers in ``corpus.documents``.

    Parameters
    ----------
    corpus : SourceCorpus
    unit : str
        "sentence", "chunk", "passage" or "document".
    """

    def __init__(self, corpus: SourceCorpus, unit: UnitKind) -> None:
        self.corpus, self._segmenter = corpus, segmenter_of(unit)
        self.every = range(len(corpus.documents))
        lengths = [len(document.text) for document in corpus.documents]
        self._starts = np.cumsum([0, *lengths[:-1]])  # (documents,)
        self._cut: dict[int, list[Unit]] = {}
        self._pools: dict[int, Pool] = {}

    def units(self, number: int) -> list[Unit]:
        """The units of one document."""
        if number not in self._cut:
            self._cut[number] = self._segmenter.segment(self.corpus.documents[number].text)
        return self._cut[number]

    def scores(
        self, scorer: Scorer, query: str, numbers: Sequence[int], collection: Sequence[int]
    ) -> list[NDArray[np.float32]]:
        """Logits of the units of these documents, (units,) each.

        A scorer whose logits depend on the collection gets the counts of the words of ``collection``, also
        document numbers, which is what the question is asked of.
        """
        requests = [(query, self.corpus.documents[number].text, self.units(number)) for number in numbers]
        index = self.index(collection) if getattr(scorer, "uses_collection", False) else None
        return list(score_batch(scorer, requests, collection=index))

    def index(self, numbers: Sequence[int]) -> CollectionIndex:
        """The words of these documents; the key of each is its place among ``numbers``, such as "0"."""
        return self._whole_index if numbers == self.every else self._index(numbers)

    def pool(self, numbers: Sequence[int], count_tokens: CountTokens) -> Pool:
        """The units of these documents together; the function that counts tokens is always the same."""
        none = Pool(Spans.of([]), np.zeros(0, np.int64))
        pools = [none, *(self._pool(number, count_tokens) for number in numbers)]
        starts, ends = map(np.concatenate, zip(*(pool.spans for pool in pools), strict=True))
        return Pool(Spans(starts, ends), np.concatenate([pool.tokens for pool in pools]))

    def place(self, number: int, spans: Spans) -> Spans:
        """Spans of one document where the documents are laid end to end."""
        start = self._starts[number]
        return Spans(spans.starts + start, spans.ends + start)

    @cached_property
    def _whole_index(self) -> CollectionIndex:
        return self._index(self.every)

    def _index(self, numbers: Sequence[int]) -> CollectionIndex:
        return CollectionIndex.of([unit.model_text for unit in self.units(number)] for number in numbers)

    def _pool(self, number: int, count_tokens: CountTokens) -> Pool:
        if number not in self._pools:
            text, units = self.corpus.documents[number].text, self.units(number)
            tokens = np.array([count_tokens(text[unit.start : unit.end]) for unit in units], np.int64)
            self._pools[number] = Pool(self.place(number, Spans.of(units)), tokens)
        return self._pools[number]


class Shelf:
    """Corpora cut into units, kept for further settings."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], CorpusUnits] = {}

    def units(self, corpus: SourceCorpus, unit: str) -> CorpusUnits:
        """The corpus cut into units of this kind."""
        key = corpus.source, unit
        if key not in self._kept:
            self._kept[key] = CorpusUnits(corpus, unit)  # type: ignore[arg-type]
        return self._kept[key]
