"""An inverted index of the units of texts as plain arrays, and BM25 from its counts.

BM25 scores units, the text around them, and whole texts; moments put these scores on
one scale.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=np.generic)

BM25_K1, BM25_B = 1.5, 0.75

_LINEAR_Z = 4.0
"""Z-scores up to this value are used as they are; beyond it they grow with the
logarithm. In a large collection, few sentences share a word with the question: the
deviation is small, and the best z-score grows with its size."""

REACH = (1, 3, 8)
"""Three sizes of a unit's surroundings: this many units before it, the unit, and
this many after it."""
_MOST_TIMES = 2**16 - 1


class Postings(NamedTuple):
    """The units that contain each word; never changed.

    A posting, a distinct word of a unit, takes 6 bytes.
    """

    words: NDArray[np.int32]  # (distinct words,) numbers in a vocabulary, increasing
    stops: NDArray[
        np.int64
    ]  # (distinct words + 1,): postings stops[i] to stops[i + 1] are those of words[i]
    units: NDArray[np.int32]  # (postings,) increasing for each word
    times: NDArray[
        np.uint16
    ]  # (postings,) how often the unit contains the word, at most 65,535
    words_per_unit: NDArray[np.int32]  # (units,)
    text_stops: NDArray[
        np.int64
    ]  # (texts + 1,): text i has the units text_stops[i] to text_stops[i + 1]

    @property
    def n_units(self) -> int:
        """Number of units of all texts."""
        return len(self.words_per_unit)


class QueryCounts(NamedTuple):
    """Counts of each stem of a query in each unit, listing only the pairs that occur, by unit, then stem."""

    units: NDArray[np.int64]  # (pairs,)
    stems: NDArray[np.int64]  # (pairs,) index among the query's stems
    times: NDArray[np.int64]  # (pairs,)
    n_stems: int
    words_per_unit: NDArray[
        np.float64
    ]  # (units,) words of every unit, of the query or not
    text_starts: NDArray[
        np.int64
    ]  # (texts,) first unit of each text, in increasing order

    @property
    def n_units(self) -> int:
        """Number of units of all texts."""
        return len(self.words_per_unit)


def counts_of_texts(counts: QueryCounts) -> QueryCounts:
    """The same counts with each text as a single unit."""
    n_texts = len(counts.text_starts)
    text = (
        np.searchsorted(counts.text_starts, counts.units, side="right") - 1
    )  # (pairs,)
    pairs, place = np.unique(
        text * max(counts.n_stems, 1) + counts.stems, return_inverse=True
    )
    sums = np.concatenate([[0.0], np.cumsum(counts.words_per_unit)])
    stops = np.append(counts.text_starts, np.int64(counts.n_units))
    return QueryCounts(
        pairs // max(counts.n_stems, 1),
        pairs % max(counts.n_stems, 1),
        np.bincount(place, counts.times, minlength=len(pairs)).astype(np.int64),
        counts.n_stems,
        np.diff(sums[stops]) if n_texts else np.zeros(0),
        np.arange(n_texts),
    )


def text_postings(
    numbers: NDArray[np.int32], units: NDArray[np.int32], n_units: int
) -> Postings:
    """Index one text: for each of its words, (words,), its number in the vocabulary and its unit."""
    n = max(n_units, 1)
    pairs, times = np.unique(numbers.astype(np.int64) * n + units, return_counts=True)
    return _indexed(
        (pairs // n).astype(np.int32),
        (pairs % n).astype(np.int32),
        np.minimum(times, _MOST_TIMES).astype(np.uint16),
        np.bincount(units, minlength=n_units).astype(np.int32),
        np.array([0, n_units], np.int64),
    )


def merged(parts: Sequence[Postings]) -> Postings:
    """The postings of several sets of texts as one, in order, sorted by word."""
    firsts = np.cumsum([0, *(part.n_units for part in parts)], dtype=np.int64)
    stops = [
        part.text_stops[1:] + first for part, first in zip(parts, firsts, strict=False)
    ]
    return _indexed(
        _joined([_word_of_each(part) for part in parts], np.int32),
        _joined(
            [
                part.units + np.int32(first)
                for part, first in zip(parts, firsts, strict=False)
            ],
            np.int32,
        ),
        _joined([part.times for part in parts], np.uint16),
        _joined([part.words_per_unit for part in parts], np.int32),
        _joined([np.zeros(1, np.int64), *stops], np.int64),
    )


def kept_texts(postings: Postings, kept: NDArray[np.bool_]) -> Postings:
    """The postings of those texts for which ``kept``, (texts,), is true."""
    sizes = np.diff(postings.text_stops)
    live = np.repeat(kept, sizes)  # (units,)
    number = np.cumsum(live) - 1  # (units,)
    mask = live[postings.units]
    return _indexed(
        _word_of_each(postings)[mask],
        number[postings.units[mask]].astype(np.int32),
        postings.times[mask],
        postings.words_per_unit[live],
        np.cumsum([0, *sizes[kept]], dtype=np.int64),
    )


def count_stems(
    postings: Postings, columns: NDArray[np.int64], n_stems: int
) -> QueryCounts:
    """Count the query's stems in every unit.

    ``columns``, (vocabulary,), has each word's stem, else -1.
    """
    n = max(n_stems, 1)
    cells, times = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for place in np.flatnonzero(columns[postings.words] >= 0):
        own = slice(int(postings.stops[place]), int(postings.stops[place + 1]))
        cells.append(
            postings.units[own].astype(np.int64) * n + columns[postings.words[place]]
        )
        times.append(postings.times[own].astype(np.int64))
    pairs, inverse = np.unique(np.concatenate(cells), return_inverse=True)
    together = np.bincount(inverse, np.concatenate(times), minlength=len(pairs)).astype(
        np.int64
    )
    words_per_unit = postings.words_per_unit.astype(np.float64)
    return QueryCounts(
        pairs // n,
        pairs % n,
        together,
        n_stems,
        words_per_unit,
        postings.text_stops[:-1],
    )


def check(postings: Postings, n_words: int, n_texts: int) -> None:
    """Raise ``ValueError`` unless the arrays fit together, a vocabulary of ``n_words`` and ``n_texts`` texts."""
    arrays: dict[str, NDArray[Any]] = postings._asdict()
    for (name, array), kind in zip(arrays.items(), "iiiuii", strict=True):
        if (
            array.ndim != 1
            or array.dtype.kind != kind
            or (name.endswith("stops") and not len(array))
        ):
            raise ValueError(
                f"{name} of the index is {array.dtype} of shape {array.shape}; expected"
                " integers"
            )
    words, stops, units, times, _, text_stops = postings

    def cuts(places: NDArray[np.int64], parts: int, last: int) -> bool:
        ends = len(places) == parts + 1 and places[0] == 0 and places[-1] == last
        return bool(ends and (np.diff(places) >= 0).all())

    sound = {
        "words": (
            not len(words)
            or (words[0] >= 0 and words[-1] < n_words and (np.diff(words) > 0).all())
        ),
        "stops": cuts(stops, len(words), len(units)),
        "units": not len(units) or 0 <= units.min() <= units.max() < postings.n_units,
        "times": len(times) == len(units),
        "text_stops": cuts(text_stops, n_texts, postings.n_units),
    }
    if wrong := [name for name, right in sound.items() if not right]:
        raise ValueError(
            f"{wrong[0]} of the index does not fit its other arrays; it is damaged:"
            " make it again"
        )


def _indexed(
    words: NDArray[np.int32],
    units: NDArray[np.int32],
    times: NDArray[np.uint16],
    words_per_unit: NDArray[np.int32],
    text_stops: NDArray[np.int64],
) -> Postings:
    """Sort postings by word; those of one word are already in the order of their units."""
    order = np.argsort(words, kind="stable")
    words = words[order]
    first = np.flatnonzero(
        np.diff(words, prepend=np.int32(-1))
    )  # the first posting of each word
    return Postings(
        words[first],
        np.append(first, len(words)).astype(np.int64),
        units[order],
        times[order],
        words_per_unit,
        text_stops,
    )


def _word_of_each(postings: Postings) -> NDArray[np.int32]:
    return np.repeat(postings.words, np.diff(postings.stops))


def _joined(arrays: Sequence[NDArray[Any]], dtype: type[T]) -> NDArray[T]:
    return np.concatenate([np.zeros(0, dtype), *arrays]).astype(dtype, copy=False)


class Moments(NamedTuple):
    """Mean and standard deviation of the scores of all units."""

    mean: float
    spread: float

    @classmethod
    def of(cls, scores: NDArray[np.floating], least_units: int = 0) -> Self:
        """Compute them from scores, to which zeros are added until there are ``least_units``."""
        values = scores.astype(np.float64)
        n = max(len(values), least_units, 1)
        mean = values.sum() / n
        return cls(
            mean,
            np.sqrt((np.square(values - mean).sum() + (n - len(values)) * mean**2) / n),
        )

    def standardize(self, scores: NDArray[np.floating]) -> NDArray[np.float64]:
        """Z-scores: (units,); 0 if all scores are equal."""
        values = scores.astype(np.float64)
        return (
            np.zeros(len(values))
            if self.spread < 1e-9
            else (values - self.mean) / self.spread
        )


def moments_of(
    scores: Sequence[NDArray[np.floating]], least_units: int
) -> tuple[Moments, ...]:
    """The moments of the units' scores and of those of their surroundings, by `REACH`."""
    own, *around = scores
    # equal scores, as the surroundings in a short text have, must become 0, so no zeros
    # are added to them
    least = [
        least_units if (np.abs(np.diff(values)) > 1e-9).any() else 0
        for values in around
    ]
    return Moments.of(own, least_units), *map(Moments.of, around, least)


def standardized_by(
    moments: Sequence[Moments], scores: Sequence[NDArray[np.float64]]
) -> list[NDArray[np.float64]]:
    """The z-scores of each array of scores, by its moments: (units,)."""
    return [
        own.standardize(values) for own, values in zip(moments, scores, strict=True)
    ]


def tempered(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Z-scores, of which those above `_LINEAR_Z` grow only with the logarithm."""
    result, large = z.copy(), z > _LINEAR_Z  # few are
    result[large] = _LINEAR_Z + np.log1p(z[large] - _LINEAR_Z)
    return result


def rarity(counts: QueryCounts, least_units: int = 0) -> NDArray[np.float64]:
    """Lucene's idf of each stem of the query, as if among at least ``least_units`` units, in nats: (stems,)."""
    frequency = np.bincount(
        counts.stems, minlength=counts.n_stems
    )  # (stems,) units that hold the stem
    return np.log1p(
        (max(counts.n_units, least_units) - frequency + 0.5) / (frequency + 0.5)
    )


def bm25_scores(
    counts: QueryCounts,
    idf: NDArray[np.float64],
    reach: int = 0,
    mean: float | None = None,
) -> tuple[float, NDArray[np.float64]]:
    """Robertson's BM25 (k1 = 1.5, b = 0.75) of each unit and the ``reach`` units before and after it in its text.

    Returns the mean number of words of such a stretch, or the one given, and the
    scores: (units,).
    """
    n = counts.n_units
    edges, numbers = np.append(counts.text_starts, n), np.arange(n)
    firsts, stops = (
        np.repeat(ends, np.diff(edges)) for ends in (edges[:-1], edges[1:])
    )
    first, stop = (
        np.maximum(numbers - reach, firsts),
        np.minimum(numbers + reach + 1, stops),
    )
    sums = np.concatenate([[0.0], np.cumsum(counts.words_per_unit)])
    words = sums[stop] - sums[first]  # (units,)
    if mean is None:
        mean = float(words.mean()) if n else 0.0
    saturation = BM25_K1 * (1 - BM25_B + BM25_B * (words / max(mean, 1.0)))  # (units,)
    scores = np.zeros(n)
    for stem, weight in enumerate(idf):
        own = counts.stems == stem
        units, times = counts.units[own], counts.times[own]
        # a unit counts for all units from its first to its last neighbour
        near = np.cumsum(
            np.bincount(first[units], times, n + 1)
            - np.bincount(stop[units], times, n + 1)
        )
        touched = np.flatnonzero(near)
        scores[touched] += (
            weight
            * near[touched]
            * (BM25_K1 + 1)
            / (near[touched] + saturation[touched])
        )
    return mean, scores


@dataclass(frozen=True, slots=True)
class TextStatistics:
    """Statistics of a query over the texts of a collection, each taken as a whole."""

    idf: NDArray[np.float64]  # (stems,) of the query: rarity among texts
    mean_words: float  # of a text
    moments: Moments  # of the texts' BM25 scores
    best: float  # the largest text score of the collection


def text_statistics(
    counts: QueryCounts, unit_z: Sequence[NDArray[np.float64]]
) -> TextStatistics:
    """Compute the statistics of a query over whole texts.

    The arguments are those of `text_scores`.
    """
    texts = counts_of_texts(counts)
    idf = rarity(texts)
    mean, whole = bm25_scores(texts, idf)
    moments = Moments.of(whole)
    best = float(
        text_scores(counts, unit_z, TextStatistics(idf, mean, moments, 0.0)).max(
            initial=-np.inf
        )
    )
    return TextStatistics(idf, mean, moments, best if np.isfinite(best) else 0.0)


def text_scores(
    counts: QueryCounts,
    unit_z: Sequence[NDArray[np.float64]],
    statistics: TextStatistics,
) -> NDArray[np.float64]:
    """Score texts as wholes: (texts,).

    ``unit_z`` are (units,) of each unit, and of its surroundings.

    A text's score is the z-score of its BM25, plus the best unit's mean of its
    z-scores, all tempered.
    """
    _, whole = bm25_scores(
        counts_of_texts(counts), statistics.idf, mean=statistics.mean_words
    )  # (texts,)
    best = best_of_texts(counts, np.mean([tempered(z) for z in unit_z], axis=0))
    return tempered(statistics.moments.standardize(whole)) + np.where(
        np.isfinite(best), best, 0.0
    )


def best_of_texts(
    counts: QueryCounts, values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The largest value, of ``values``, (units,), of each text.

    Negative infinity without units: (texts,).
    """
    stops = np.append(counts.text_starts, np.int64(counts.n_units))
    filled = np.flatnonzero(np.diff(stops))  # texts with units
    best = np.full(len(counts.text_starts), -np.inf)
    best[filled] = np.maximum.reduceat(values, stops[filled])
    return best
