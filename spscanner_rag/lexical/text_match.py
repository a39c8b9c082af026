"""How well a text as a whole matches a query, relative to the other texts of its collection.

A sentence's own words often stand in several texts, and the scanner reads each text alone. This tells texts apart
by what no sentence shows: whether the query's words stand in the text at all, and near each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lexical.bm25 import Moments, mean_words, own_scores, rarity, tempered
from spscanner_rag.lexical.postings import QueryCounts, counts_of_texts


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
    """Score texts as wholes: (texts,).

    A text's score is the z-score of its BM25 among the texts of the collection, plus that of its best unit: the
    mean of the z-scores of the unit and of its surroundings, each tempered. A text without units has only the
    first.

    Parameters
    ----------
    counts : QueryCounts
        How often each unit has each stem of the query.
    unit_z : sequence of (units,)
        Z-scores of each unit, and of its surroundings, over the units of the collection.
    statistics : TextStatistics
    """
    whole = own_scores(counts_of_texts(counts), statistics.idf, statistics.mean_words)  # (texts,)
    scores = tempered(statistics.moments.standardize(whole))
    stops = np.append(counts.text_starts, np.int64(counts.n_units))
    filled = np.flatnonzero(np.diff(stops))  # texts with units
    if len(filled):
        units = np.mean([tempered(z) for z in unit_z], axis=0)  # (units,)
        scores[filled] += np.maximum.reduceat(units, stops[filled])
    return scores
