"""The lexical channel: which words of a text also occur in the query, and BM25 scores per unit.

A small model cannot learn from a few thousand questions that "Ahab" in the query and "Ahab" in the document are
the same; this channel tells it. The scores are relative to all texts that the query is asked of, the collection:
its units are BM25's documents, a word's idf is its rarity among them, and scores are standardized over them. The
only step that depends on the model's tokenizer is the last, which gives each token the class of its word.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.text.words import QueryCounts, TextWords, count_stems, query_stems, stem_columns

IDF_EDGES = (1.5, 2.5, 3.5, 5.0)
"""Boundaries, as idf with natural logarithm, between match classes 1 to 5; class 5 has the rarest words."""

BM25_K1, BM25_B = 1.5, 0.75

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


@dataclass(frozen=True, slots=True)
class LexicalStatistics:
    """What a query's matches are relative to: its statistics over all units of a text or a collection."""

    idf: NDArray[np.float64]  # (stems,) of the query
    mean_words: float  # of a unit
    own: Moments  # of the units' BM25 scores
    mean_words_around: tuple[float, ...] = ()  # of a unit's surroundings, by `REACH`
    around: tuple[Moments, ...] = ()  # of their BM25 scores


@dataclass(frozen=True, slots=True)
class LexicalMatch:
    """The lexical match of a query with a text."""

    token_classes: NDArray[np.uint8]  # (text tokens,): 0 none, 1 to 5 by idf
    prior: NDArray[np.float32]  # (units,): BM25 scores as z-scores over the collection's units
    surroundings: NDArray[np.float32] | None  # (units, 3): the same for the text around each unit, by `REACH`


def lexical_statistics(
    counts: QueryCounts, *, surroundings: bool = False, least_units: int = 0
) -> LexicalStatistics:
    """Statistics of a query over all units that were counted; with ``surroundings``, also of the text around each.

    Fewer than ``least_units`` units are scored as if units without any word of the query were added. (In a text
    of three sentences no word is rare, so no score could stand out.)
    """
    frequency = np.bincount(counts.stems, minlength=counts.n_stems)  # (stems,) units that hold the stem
    idf = np.log1p((max(counts.n_units, least_units) - frequency + 0.5) / (frequency + 0.5))
    mean_words = _mean(counts.words_per_unit)
    own = Moments.of(own_scores(counts, idf, mean_words), least_units)
    if not surroundings:
        return LexicalStatistics(idf, mean_words, own)
    means = tuple(_mean(_sums_around(counts.words_per_unit, reach, counts.text_starts)) for reach in REACH)
    # In a short text every unit's surroundings are the whole text. Their equal scores must stay 0, so no units are
    # added for comparison.
    around = tuple(
        Moments.of(scores, least_units if (np.abs(np.diff(scores)) > 1e-9).any() else 0)
        for scores in scores_around(counts, idf, means)
    )
    return LexicalStatistics(idf, mean_words, own, means, around)


def match_query(
    words: TextWords,
    query: str,
    token_starts: NDArray[np.integer],
    token_ends: NDArray[np.integer],
    *,
    surroundings: bool = False,
    least_units: int = 0,
    statistics: LexicalStatistics | None = None,
) -> LexicalMatch:
    """Match a query with a text; with ``surroundings``, also score the text around each unit.

    ``token_starts`` and ``token_ends``, (text tokens,), are character positions of the model's tokens in the
    joined model text. A token gets the class of the word that its last character belongs to. ``statistics`` are
    those of the query over the collection that the text belongs to, with the same ``surroundings``. By default the
    text is its own collection, and ``least_units`` is as for `lexical_statistics`.
    """
    stems = query_stems(query)
    counts = count_stems(words, stems)
    if statistics is None:
        statistics = lexical_statistics(counts, surroundings=surroundings, least_units=least_units)
    classes = 1 + np.searchsorted(IDF_EDGES, statistics.idf, side="right")  # (stems,)
    columns = stem_columns(words.of_stem, stems, len(words.vocabulary))  # (vocabulary,)
    class_of = np.append(classes, 0).astype(np.uint8)[columns]  # (vocabulary,); column -1 is class 0
    token_classes = np.zeros(len(token_starts), np.uint8)
    if len(words.starts):
        # the last word that starts before the token's end, if it extends to that end
        word = np.searchsorted(words.starts, token_ends, side="left") - 1  # (tokens,)
        reaches = (word >= 0) & (words.ends[word] >= token_ends) & (token_ends > token_starts)
        token_classes[reaches] = class_of[words.numbers[word[reaches]]]
    own = own_scores(counts, statistics.idf, statistics.mean_words)
    prior = statistics.own.standardize(own).astype(np.float32)
    if not surroundings:
        return LexicalMatch(token_classes, prior, None)
    around = scores_around(counts, statistics.idf, statistics.mean_words_around)
    standard = [m.standardize(scores) for m, scores in zip(statistics.around, around, strict=True)]
    return LexicalMatch(token_classes, prior, np.stack(standard, axis=1).astype(np.float32))


def standardized(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """Z-scores of units among themselves; 0 if none differ: (units,)."""
    return Moments.of(scores).standardize(scores)


def own_scores(counts: QueryCounts, idf: NDArray[np.float64], mean_words: float) -> NDArray[np.float64]:
    """Robertson's BM25 with k1 = 1.5, b = 0.75 and Lucene's never-negative idf: (units,)."""
    saturation = _saturation(counts.words_per_unit, mean_words)  # (units,)
    weights = idf[counts.stems] * counts.times * (BM25_K1 + 1) / (counts.times + saturation[counts.units])
    return np.asarray(np.bincount(counts.units, weights, minlength=counts.n_units), np.float64)


def scores_around(
    counts: QueryCounts, idf: NDArray[np.float64], mean_words_around: tuple[float, ...]
) -> Iterator[NDArray[np.float64]]:
    """Yield the BM25 of the text around each unit, with the units' idf, for each size in `REACH`: (units,)."""
    order = np.argsort(counts.stems, kind="stable")
    of_stem = np.searchsorted(counts.stems[order], np.arange(len(idf) + 1))
    for reach, mean_words in zip(REACH, mean_words_around, strict=True):
        words = _sums_around(counts.words_per_unit, reach, counts.text_starts)
        saturation = _saturation(words, mean_words)  # (units,)
        scores = np.zeros(counts.n_units)
        for stem, rarity in enumerate(idf):
            pairs = order[of_stem[stem] : of_stem[stem + 1]]
            if not len(pairs):
                continue
            times = np.bincount(counts.units[pairs], counts.times[pairs], minlength=counts.n_units)
            near = _sums_around(times.astype(np.float64), reach, counts.text_starts)  # (units,)
            scores += rarity * near * (BM25_K1 + 1) / (near + saturation)
        yield scores


def _mean(lengths: NDArray[np.float64]) -> float:
    return float(lengths.mean()) if len(lengths) else 0.0


def _saturation(lengths: NDArray[np.float64], mean: float) -> NDArray[np.float64]:
    """BM25's k1 times its length norm, for texts of these lengths: (texts,)."""
    return np.asarray(BM25_K1 * (1 - BM25_B + BM25_B * (lengths / max(mean, 1.0))), np.float64)


def _sums_around(
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
