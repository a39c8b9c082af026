"""Choose sentences that are relevant and do not repeat each other: maximal marginal relevance."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lexical.words import index_words


class Redundancy:
    """Likeness of texts: the cosine of their words, each stem once and weighted by its rarity, as in BM25."""

    def __init__(self, texts: Sequence[str]) -> None:
        words = index_words(texts)
        stem_of = np.zeros(len(words.vocabulary), np.int64)
        for stem, numbers in enumerate(words.of_stem.values()):
            stem_of[np.asarray(numbers, np.int64)] = stem
        own, n = words.postings, max(len(texts), 1)
        stems = np.repeat(stem_of[own.words], np.diff(own.stops))
        pairs = np.unique(stems * n + own.units)  # each stem of each text once, sorted by stem
        self._stems, self._units = pairs // n, pairs % n
        n_stems = len(words.of_stem)
        self._of_stem = np.searchsorted(self._stems, np.arange(n_stems + 1))
        frequency = np.diff(self._of_stem)
        self._weights = np.log1p((len(texts) - frequency + 0.5) / (frequency + 0.5))  # (stems,)
        squares = np.bincount(self._units, self._weights[self._stems] ** 2, minlength=len(texts))
        self._lengths = np.sqrt(np.maximum(squares, 1e-12))  # (texts,)
        self._by_unit = np.argsort(self._units, kind="stable")
        self._of_unit = np.searchsorted(self._units[self._by_unit], np.arange(len(texts) + 1))

    def with_text(self, number: int) -> NDArray[np.float64]:
        """The cosine of one text with each, from 0 to 1: (texts,)."""
        own = self._stems[self._by_unit[self._of_unit[number] : self._of_unit[number + 1]]]
        products = np.zeros(len(self._lengths))
        for stem in own.tolist():  # each text has a stem once
            products[self._units[self._of_stem[stem] : self._of_stem[stem + 1]]] += self._weights[stem] ** 2
        return np.asarray(products / (self._lengths * self._lengths[number]))


def diverse(
    texts: Sequence[str],
    scores: NDArray[np.float64],
    candidates: NDArray[np.int64],
    most: int,
    diversity: float,
    owners: NDArray[np.integer] | None = None,
    most_per_owner: int | None = None,
) -> NDArray[np.int64]:
    """Pick texts by maximal marginal relevance (Carbonell and Goldstein, 1998): (picks,), in the order of picking.

    Each of ``candidates``, best first, has diversity * score - (1 - diversity) * its largest cosine to a pick. At
    most ``most_per_owner`` are picked of each document (``owners``: (texts,)). Time: picks times texts.
    """
    redundancy = Redundancy(texts)
    values = diversity * scores[candidates]
    repeated = np.zeros(len(candidates))
    picks: list[int] = []
    taken: dict[int, int] = {}
    while len(picks) < most and len(candidates):
        place = int(np.argmax(values - (1 - diversity) * repeated))
        if values[place] == -np.inf:
            break  # nothing is left
        pick = int(candidates[place])
        picks.append(pick)
        values[place] = -np.inf
        repeated = np.maximum(repeated, redundancy.with_text(pick)[candidates])
        if owners is not None and most_per_owner is not None:
            owner = int(owners[pick])
            taken[owner] = taken.get(owner, 0) + 1
            if taken[owner] == most_per_owner:
                values[owners[candidates] == owner] = -np.inf
    return np.array(picks, np.int64)
