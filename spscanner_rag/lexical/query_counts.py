"""How often each unit of texts contains each stem of a query."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lexical.postings import Postings


class QueryCounts(NamedTuple):
    """Counts of each stem of a query in each unit.

    Only the pairs of a unit and a stem that occur are listed, by unit, then by stem.
    """

    units: NDArray[np.int64]  # (pairs,)
    stems: NDArray[np.int64]  # (pairs,) index among the query's stems
    times: NDArray[np.int64]  # (pairs,)
    n_stems: int
    words_per_unit: NDArray[np.float64]  # (units,) all words, of the query or not
    text_starts: NDArray[np.int64]  # (texts,) first unit of each text, increasing

    @property
    def n_units(self) -> int:
        """Number of units of all texts."""
        return len(self.words_per_unit)


def count_stems(
    postings: Postings, columns: NDArray[np.int64], n_stems: int
) -> QueryCounts:
    """Count the query's stems in every unit.

    ``columns``, (vocabulary,), has the index of each word's stem among them, else -1.
    """
    n = max(n_stems, 1)
    cells = [np.zeros(0, np.int64)]
    times = [np.zeros(0, np.int64)]
    for place in np.flatnonzero(columns[postings.words] >= 0):
        of_word = slice(int(postings.stops[place]), int(postings.stops[place + 1]))
        units = postings.units[of_word].astype(np.int64)
        cells.append(units * n + columns[postings.words[place]])
        times.append(postings.times[of_word].astype(np.int64))
    pairs, pair_of_cell = np.unique(np.concatenate(cells), return_inverse=True)
    total = np.bincount(pair_of_cell, np.concatenate(times), minlength=len(pairs))
    return QueryCounts(
        pairs // n,
        pairs % n,
        total.astype(np.int64),
        n_stems,
        postings.words_per_unit.astype(np.float64),
        postings.text_stops[:-1],
    )


def counts_of_texts(counts: QueryCounts) -> QueryCounts:
    """The same counts with each text as a single unit."""
    n = max(counts.n_stems, 1)
    n_texts = len(counts.text_starts)
    texts = np.searchsorted(counts.text_starts, counts.units, side="right") - 1
    cells = texts * n + counts.stems  # (pairs,)
    pairs, pair_of_cell = np.unique(cells, return_inverse=True)
    times = np.bincount(pair_of_cell, counts.times, minlength=len(pairs))
    words_before = np.concatenate([[0.0], np.cumsum(counts.words_per_unit)])
    stops = np.append(counts.text_starts, np.int64(counts.n_units))
    words_per_text = np.diff(words_before[stops]) if n_texts else np.zeros(0)
    return QueryCounts(
        pairs // n,
        pairs % n,
        times.astype(np.int64),
        counts.n_stems,
        words_per_text,
        np.arange(n_texts),
    )
