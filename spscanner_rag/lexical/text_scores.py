"""Scores of whole texts of a collection, from the counts of a query's stems."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lexical.bm25 import bm25_scores, rarity
from spscanner_rag.lexical.moments import Moments, tempered
from spscanner_rag.lexical.query_counts import QueryCounts, counts_of_texts


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
    mean, bm25 = bm25_scores(texts, idf)
    statistics = TextStatistics(idf, mean, Moments.of(bm25), best=0.0)
    best = float(text_scores(counts, unit_z, statistics).max(initial=-np.inf))
    if not np.isfinite(best):
        return statistics
    return TextStatistics(idf, mean, statistics.moments, best)


def text_scores(
    counts: QueryCounts,
    unit_z: Sequence[NDArray[np.float64]],
    statistics: TextStatistics,
) -> NDArray[np.float64]:
    """Score texts as wholes: (texts,).

    ``unit_z`` are (units,) of each unit, and of its surroundings. A text's score is the
    z-score of its BM25, plus the best unit's mean of its z-scores, all tempered.
    """
    texts = counts_of_texts(counts)
    _, bm25 = bm25_scores(texts, statistics.idf, mean=statistics.mean_words)  # (texts,)
    unit_means = np.mean([tempered(z) for z in unit_z], axis=0)
    best_unit = best_of_texts(counts, unit_means)
    best_unit = np.where(np.isfinite(best_unit), best_unit, 0.0)
    return tempered(statistics.moments.standardize(bm25)) + best_unit


def best_of_texts(
    counts: QueryCounts, values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The largest value of each text: (texts,).

    ``values`` are (units,). A text without units has negative infinity.
    """
    stops = np.append(counts.text_starts, np.int64(counts.n_units))
    with_units = np.flatnonzero(np.diff(stops))
    best = np.full(len(counts.text_starts), -np.inf)
    best[with_units] = np.maximum.reduceat(values, stops[with_units])
    return best
