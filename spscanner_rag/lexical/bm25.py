"""BM25 of units and of the text around them, from the counts of a query's stems.

Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009),
with Lucene's idf. A unit u, with its surroundings, has for the stems t of the query

    BM25(u) = sum over t of idf(t) (k1 + 1) tf(t, u) / (tf(t, u) + s(u)),
    s(u) = k1 (1 - b + b w(u) / m),

where tf(t, u) is how often it contains t, w(u) its number of words, and m the mean of
those numbers over the collection.
"""

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lexical.query_counts import QueryCounts

BM25_K1 = 1.5
BM25_B = 0.75

REACH = (1, 3, 8)
"""Three sizes of a unit's surroundings: this many units before it, the unit, and
this many after it."""


def rarity(counts: QueryCounts, least_units: int = 0) -> NDArray[np.float64]:
    """Lucene's idf of each stem of the query, in nats: (stems,).

    It is computed as if there were at least ``least_units`` units.
    """
    n = max(counts.n_units, least_units)
    frequency = np.bincount(counts.stems, minlength=counts.n_stems)  # (stems,) of units
    return np.log1p((n - frequency + 0.5) / (frequency + 0.5))


def bm25_scores(
    counts: QueryCounts,
    idf: NDArray[np.float64],
    reach: int = 0,
    mean: float | None = None,
) -> tuple[float, NDArray[np.float64]]:
    """BM25 of each unit and the ``reach`` units before and after it in its text.

    Returns the mean number of words of such a stretch, which is ``mean`` unless that is
    None, and the scores: (units,).
    """
    n = counts.n_units
    first, stop = _surroundings(counts, reach)  # each (units,)
    words_before = np.concatenate([[0.0], np.cumsum(counts.words_per_unit)])
    words = words_before[stop] - words_before[first]  # (units,)
    if mean is None:
        mean = float(words.mean()) if n else 0.0
    saturation = BM25_K1 * (1 - BM25_B + BM25_B * (words / max(mean, 1.0)))  # (units,)
    scores = np.zeros(n)
    for stem, weight in enumerate(idf):
        of_stem = counts.stems == stem
        units = counts.units[of_stem]
        times = counts.times[of_stem]
        # A unit counts for all units from its first to its last neighbour.
        begins = np.bincount(first[units], times, n + 1)
        ends = np.bincount(stop[units], times, n + 1)
        frequency = np.cumsum(begins - ends)
        touched = np.flatnonzero(frequency)
        near = frequency[touched]
        scores[touched] += weight * near * (BM25_K1 + 1) / (near + saturation[touched])
    return mean, scores


def _surroundings(
    counts: QueryCounts, reach: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first unit of each unit's surroundings, and the one after the last."""
    numbers = np.arange(counts.n_units)
    edges = np.append(counts.text_starts, counts.n_units)
    sizes = np.diff(edges)
    first_of_text = np.repeat(edges[:-1], sizes)
    stop_of_text = np.repeat(edges[1:], sizes)
    first = np.maximum(numbers - reach, first_of_text)
    stop = np.minimum(numbers + reach + 1, stop_of_text)
    return first, stop
