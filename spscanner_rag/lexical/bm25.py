"""BM25 of units, of the text around them and of whole texts, and the moments that put scores on one scale."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lexical.postings import QueryCounts, counts_of_texts

BM25_K1, BM25_B = 1.5, 0.75

_RARE = 4  # a stem is rare if its surroundings are less than a quarter of all units
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


def standardized(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """Z-scores of units among themselves; 0 if none differ: (units,)."""
    return Moments.of(scores).standardize(scores)


def tempered(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Z-scores up to `_LINEAR_Z` as they are, larger ones by their logarithm."""
    result, large = z.copy(), z > _LINEAR_Z  # few are
    result[large] = _LINEAR_Z + np.log1p(z[large] - _LINEAR_Z)
    return result


def rarity(counts: QueryCounts, least_units: int = 0) -> NDArray[np.float64]:
    """Lucene's idf of each stem of the query among at least so many units, natural logarithm: (stems,)."""
    frequency = np.bincount(counts.stems, minlength=counts.n_stems)  # (stems,) units that hold the stem
    return np.log1p((max(counts.n_units, least_units) - frequency + 0.5) / (frequency + 0.5))


def own_scores(counts: QueryCounts, idf: NDArray[np.float64], mean: float) -> NDArray[np.float64]:
    """Robertson's BM25 with k1 = 1.5, b = 0.75 and Lucene's never-negative idf: (units,)."""
    saturation = _saturation(counts.words_per_unit, mean)  # (units,)
    weights = idf[counts.stems] * counts.times * (BM25_K1 + 1) / (counts.times + saturation[counts.units])
    return np.asarray(np.bincount(counts.units, weights, minlength=counts.n_units), np.float64)


def scores_around(
    counts: QueryCounts, idf: NDArray[np.float64], means: Sequence[float]
) -> Iterator[NDArray[np.float64]]:
    """Yield the BM25 of the text around each unit, with the units' idf, for the size in `REACH` of each mean."""
    if not len(counts.units):  # no unit has a word of the query
        yield from (np.zeros(counts.n_units) for _ in means)
        return
    order = np.argsort(counts.stems, kind="stable")
    of_stem = np.searchsorted(counts.stems[order], np.arange(len(idf) + 1))
    for reach, mean in zip(REACH, means, strict=False):
        words = sums_around(counts.words_per_unit, reach, counts.text_starts)
        saturation = _saturation(words, mean)  # (units,)
        scores = np.zeros(counts.n_units)
        for stem, rarity in enumerate(idf):
            pairs = order[of_stem[stem] : of_stem[stem + 1]]
            if not len(pairs):
                continue
            units, near = _stem_around(counts, pairs, reach)
            scores[units] += rarity * near * (BM25_K1 + 1) / (near + saturation[units])
        yield scores


def _stem_around(
    counts: QueryCounts, pairs: NDArray[np.int64], reach: int
) -> tuple[NDArray[np.int64] | slice, NDArray[np.float64]]:
    """The units with a stem of these ``pairs`` in or near them, and how often; quick for a rare stem."""
    units, times = counts.units[pairs], counts.times[pairs]
    if _RARE * len(pairs) * (2 * reach + 1) > counts.n_units:
        everywhere = np.bincount(units, times, minlength=counts.n_units).astype(np.float64)
        return slice(None), sums_around(everywhere, reach, counts.text_starts)
    text = np.searchsorted(counts.text_starts, units, side="right") - 1
    first, stop = counts.text_starts[text], np.append(counts.text_starts[1:], counts.n_units)[text]
    around = units[:, None] + np.arange(-reach, reach + 1)  # (pairs, 2 reach + 1)
    inside = (around >= first[:, None]) & (around < stop[:, None])
    touched, place = np.unique(around[inside], return_inverse=True)
    weights = np.broadcast_to(times[:, None], around.shape)[inside]
    return touched, np.bincount(place, weights).astype(np.float64)


def mean_words(lengths: NDArray[np.float64]) -> float:
    """The mean number of words, 0 without units; ``lengths`` is (units,)."""
    return float(lengths.mean()) if len(lengths) else 0.0


def mean_words_around(counts: QueryCounts) -> list[float]:
    """The mean number of words of a unit's surroundings, for each size in `REACH`."""
    return [mean_words(sums_around(counts.words_per_unit, reach, counts.text_starts)) for reach in REACH]


def _saturation(lengths: NDArray[np.float64], mean: float) -> NDArray[np.float64]:
    """BM25's k1 times its length norm, for texts of these lengths: (texts,)."""
    return np.asarray(BM25_K1 * (1 - BM25_B + BM25_B * (lengths / max(mean, 1.0))), np.float64)


def sums_around(
    values: NDArray[np.float64], reach: int, text_starts: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Sum of each value and up to ``reach`` values before and after it in the same text: (values,)."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    numbers = np.arange(len(values))
    stops = np.append(text_starts[1:], len(values))
    sizes = stops - text_starts if len(text_starts) else stops[:0]
    first = np.maximum(numbers - reach, np.repeat(text_starts, sizes))
    stop = np.minimum(numbers + reach + 1, np.repeat(stops[: len(sizes)], sizes))
    return np.asarray(sums[stop] - sums[first], np.float64)


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
    idf, mean = rarity(texts), mean_words(texts.words_per_unit)
    moments = Moments.of(own_scores(texts, idf, mean))
    best = float(text_scores(counts, unit_z, TextStatistics(idf, mean, moments, 0.0)).max(initial=-np.inf))
    return TextStatistics(idf, mean, moments, best if np.isfinite(best) else 0.0)


def text_scores(
    counts: QueryCounts, unit_z: Sequence[NDArray[np.float64]], statistics: TextStatistics
) -> NDArray[np.float64]:
    """Score texts as wholes: (texts,). ``unit_z`` are (units,) of each unit, and of its surroundings.

    A text's score is the z-score of its BM25, plus the best unit's mean of its z-scores, all tempered.
    """
    whole = own_scores(counts_of_texts(counts), statistics.idf, statistics.mean_words)  # (texts,)
    best = best_of_texts(counts, np.mean([tempered(z) for z in unit_z], axis=0))
    return tempered(statistics.moments.standardize(whole)) + np.where(np.isfinite(best), best, 0.0)


def best_of_texts(counts: QueryCounts, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest of the values of each text's units, (units,), negative infinity without units: (texts,)."""
    stops = np.append(counts.text_starts, np.int64(counts.n_units))
    filled = np.flatnonzero(np.diff(stops))  # texts with units
    best = np.full(len(counts.text_starts), -np.inf)
    best[filled] = np.maximum.reduceat(values, stops[filled])
    return best
