"""Pick texts that do not repeat each other."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lexical.words import index_words


def diverse(
    texts: Sequence[str],
    scores: NDArray[np.float64],
    candidates: NDArray[np.int64],
    top_k: int,
    diversity: float,
) -> NDArray[np.int64]:
    """Pick texts by maximal marginal relevance: (picks,), in the order of picking.

    Source: Carbonell and Goldstein (1998). The next pick of ``candidates``, best first,
    has the largest diversity * score - (1 - diversity) * (its largest cosine with a
    pick); vectors have each stem once, weighted by rarity as in BM25. The time it takes
    grows with picks times words.

    Examples
    --------
    >>> texts = ["The ship sank.", "The ship, it sank.", "The keeper slept."]
    >>> scores = np.array([0.9, 0.8, 0.7])
    >>> diverse(texts, scores, np.arange(3), top_k=2, diversity=0.5).tolist()
    [0, 2]
    """
    similarity = _Similarity(texts)
    values = diversity * scores[candidates]
    largest = np.zeros(len(candidates))  # similarity to a pick
    picks: list[int] = []
    while len(picks) < min(top_k, len(candidates)):
        place = int(np.argmax(values - (1 - diversity) * largest))
        pick = int(candidates[place])
        picks.append(pick)
        values[place] = -np.inf
        largest = np.maximum(largest, similarity.to(pick)[candidates])
    return np.array(picks, np.int64)


class _Similarity:
    """Cosines of texts, as vectors of their stems weighted by rarity."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._n_texts = len(texts)
        words = index_words(texts)
        stem_of_word = np.zeros(len(words.vocabulary), np.int64)
        for stem, numbers in enumerate(words.of_stem.values()):
            stem_of_word[np.asarray(numbers, np.int64)] = stem
        postings = words.postings
        sizes = np.diff(postings.stops)
        stem_of_posting = np.repeat(stem_of_word[postings.words], sizes)
        # Each stem of each text once, sorted by stem.
        n = max(self._n_texts, 1)
        pairs = np.unique(stem_of_posting * n + postings.units)
        self._stems = pairs // n  # (pairs,)
        self._texts = pairs % n  # (pairs,)
        self._n_stems = len(words.of_stem)
        frequency = np.bincount(self._stems, minlength=self._n_stems)
        rarity = np.log1p((self._n_texts - frequency + 0.5) / (frequency + 0.5))
        self._weights = rarity[self._stems] ** 2  # (pairs,)
        squares = np.bincount(self._texts, self._weights, minlength=self._n_texts)
        self._lengths = np.sqrt(np.maximum(squares, 1e-12))  # (texts,)

    def to(self, text: int) -> NDArray[np.float64]:
        """The cosine of each text with one of them: (texts,)."""
        shared = np.zeros(self._n_stems, bool)
        shared[self._stems[self._texts == text]] = True
        weights = self._weights * shared[self._stems]
        products = np.bincount(self._texts, weights, minlength=self._n_texts)
        cosines: NDArray[np.float64] = products / (self._lengths * self._lengths[text])
        return cosines
