"""BM25 of units, of the text around them and of whole texts, and the moments that put scores on one scale."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lexical.postings import QueryCounts, counts_of_texts

BM25_K1, BM25_B = 1.5, 0.75

_LINEAR_Z = 4.0
"""Up to here z-scores are passed on; beyond, their logarithm. In a large collection few sentences share a word
with the question, so that the deviation is small, and the best z-score grows with the collection."""

REACH = (1, 3, 8)
"""Three sizes of a unit's surroundings: this many units before it, the unit, and this many after it."""


class Moments(NamedTuple):
    """Mean and deviation of the scores of all units."""

    mean: float
    spread: float

    @classmethod
    def of(cls, scores: NDArray[np.floating], least_units: int = 0) -> Self:
        """Compute them with zeros added up to ``least_units``."""
        values = scores.astype(np.float64)
        n = max(len(values), least_units, 1)
        mean = values.sum() / n
        return cls(mean, np.sqrt((np.square(values - mean).sum() + (n - len(values)) * mean**2) / n))

    def standardize(self, scores: NDArray[np.floating]) -> NDArray[np.float64]:
        """Z-scores; 0 if the units do not differ: (units,)."""
        values = scores.astype(np.float64)
        return np.zeros(len(values)) if self.spread < 1e-9 else (values - self.mean) / self.spread


def moments_of(scores: Sequence[NDArray[np.floating]], least_units: int) -> tuple[Moments, ...]:
    """The moments of the units' scores and of those of their surroundings, by `REACH`."""
    own, *around = scores
    # equal surroundings, those of a short text, must score 0, so no zeros are added to them
    least = [least_units if (np.abs(np.diff(values)) > 1e-9).any() else 0 for values in around]
    return Moments.of(own, least_units), *map(Moments.of, around, least)


def standardized_by(
    moments: Sequence[Moments], scores: Sequence[NDArray[np.float64]]
) -> list[NDArray[np.float64]]:
    """The z-scores of each, by its moments: (units,)."""
    return [own.standardize(values) for own, values in zip(moments, scores, strict=True)]


def tempered(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Z-scores up to `_LINEAR_Z` as they are, larger ones by their logarithm."""
    result, large = z.copy(), z > _LINEAR_Z  # few are
    result[large] = _LINEAR_Z + np.log1p(z[large] - _LINEAR_Z)
    return result


def rarity(counts: QueryCounts, least_units: int = 0) -> NDArray[np.float64]:
    """Lucene's idf of each stem of the query among at least so many units, natural logarithm: (stems,)."""
    frequency = np.bincount(counts.stems, minlength=counts.n_stems)  # (stems,) units that hold the stem
    return np.log1p((max(counts.n_units, least_units) - frequency + 0.5) / (frequency + 0.5))


def bm25_scores(
    counts: QueryCounts, idf: NDArray[np.float64], reach: int = 0, mean: float | None = None
) -> tuple[float, NDArray[np.float64]]:
    """Robertson's BM25 (k1 = 1.5, b = 0.75) of each unit and the ``reach`` units before and after it in its text.

    Returns the mean number of words of such a stretch, or the one given, and the scores: (units,).
    """
    n = counts.n_units
    edges, numbers = np.append(counts.text_starts, n), np.arange(n)
    firsts, stops = (np.repeat(ends, np.diff(edges)) for ends in (edges[:-1], edges[1:]))
    first, stop = np.maximum(numbers - reach, firsts), np.minimum(numbers + reach + 1, stops)
    sums = np.concatenate([[0.0], np.cumsum(counts.words_per_unit)])
    words = sums[stop] - sums[first]  # (units,)
    if mean is None:
        mean = float(words.mean()) if n else 0.0
    saturation = BM25_K1 * (1 - BM25_B + BM25_B * (words / max(mean, 1.0)))  # (units,)
    scores = np.zeros(n)
    for stem, weight in enumerate(idf):
        own = counts.stems == stem
        units, times = counts.units[own], counts.times[own]
        # a unit counts for those from its first to its last neighbour
        near = np.cumsum(np.bincount(first[units], times, n + 1) - np.bincount(stop[units], times, n + 1))
        touched = np.flatnonzero(near)
        scores[touched] += weight * near[touched] * (BM25_K1 + 1) / (near[touched] + saturation[touched])
    return mean, scores


@dataclass(frozen=True, slots=True)
class TextStatistics:
    """Statistics of a query over the texts of a collection, each as a whole."""

    idf: NDArray[np.float64]  # (stems,) of the query: rarity among texts
    mean_words: float  # of a text
    moments: Moments  # of the texts' BM25 scores
    best: float  # the largest text score of the collection


def text_statistics(counts: QueryCounts, unit_z: Sequence[NDArray[np.float64]]) -> TextStatistics:
    """Compute them for a collection; arguments as in `text_scores`."""
    texts = counts_of_texts(counts)
    idf = rarity(texts)
    mean, whole = bm25_scores(texts, idf)
    moments = Moments.of(whole)
    best = float(text_scores(counts, unit_z, TextStatistics(idf, mean, moments, 0.0)).max(initial=-np.inf))
    return TextStatistics(idf, mean, moments, best if np.isfinite(best) else 0.0)


def text_scores(
    counts: QueryCounts, unit_z: Sequence[NDArray[np.float64]], statistics: TextStatistics
) -> NDArray[np.float64]:
    """Score texts as wholes: (texts,). ``unit_z`` are (units,) of each unit, and of its surroundings.

    A text's score is the z-score of its BM25, plus the best unit's mean of its z-scores, all tempered.
    """
    _, whole = bm25_scores(counts_of_texts(counts), statistics.idf, mean=statistics.mean_words)  # (texts,)
    best = best_of_texts(counts, np.mean([tempered(z) for z in unit_z], axis=0))
    return tempered(statistics.moments.standardize(whole)) + np.where(np.isfinite(best), best, 0.0)


def best_of_texts(counts: QueryCounts, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest of the values of each text's units, (units,), negative infinity without units: (texts,)."""
    stops = np.append(counts.text_starts, np.int64(counts.n_units))
    filled = np.flatnonzero(np.diff(stops))  # texts with units
    best = np.full(len(counts.text_starts), -np.inf)
    best[filled] = np.maximum.reduceat(values, stops[filled])
    return best
