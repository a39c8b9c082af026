"""The soft lexical channel: which words of a text mean about the same as a word of the query.

With s(q, v) the similarity of a query word q and a text's word v (1 for words of the same stem; stop words match
no others), and df(v) the number of units that contain v, a query word has

    df(q) = min(n, sum over v of s(q, v) df(v)),    idf(q) = ln(1 + (n - df(q) + 0.5) / (df(q) + 0.5))

and a unit, or its surroundings, the score sum over q of idf(q) times the largest s(q, v) of its words.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lexical.bm25 import REACH, Moments
from spscanner_rag.lexical.postings import Postings
from spscanner_rag.lexical.word_vectors import WordVectors
from spscanner_rag.lexical.words import QueryOnWords, query_words

_STEPS = (1, 2, 5)
"""The widths 3, 7 and 17 of `REACH` as the largest of three windows of the width before, so far apart."""


class SoftStatistics(NamedTuple):
    """Statistics of a query over all units of a text or a collection, to which its soft matches are relative."""

    idf: NDArray[np.float64]  # (query words,)
    moments: tuple[Moments, ...]  # of the soft scores of the units and, by `REACH`, of their surroundings


def soft_scores(
    asked: QueryOnWords, vectors: WordVectors, least_units: int = 0, idf: NDArray[np.float64] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Soft scores of every unit of some texts, with these idf or else those of the texts themselves.

    The idf, (query words,), and the scores of each unit and, by `REACH`, of the text around it: (4, units).
    """
    n_units, starts = asked.postings.n_units, asked.postings.text_stops[:-1]
    n, units = max(n_units, least_units), np.arange(n_units)
    # with room for the largest window before and after each text
    places = units + np.searchsorted(starts, units, side="right") * REACH[-1]
    length = n_units + (len(starts) + 1) * REACH[-1]
    found = np.zeros(len(query_words(asked.query, asked.language))) if idf is None else idf
    scores = np.zeros((1 + len(REACH), n_units))
    for first, similar in asked.similarities(vectors):
        for column in range(similar.shape[1]):
            frequency, best = _best_of_units(similar[:, column], asked.postings)
            if idf is None:
                df = min(n, frequency)
                found[first + column] = np.log1p((n - df + 0.5) / (df + 0.5))
            if frequency:
                for sums, largest in zip(scores, (best, *_largest_around(best, places, length)), strict=True):
                    sums += found[first + column] * largest
    return found, scores


def best_of_words(
    asked: QueryOnWords, vectors: WordVectors, idf: NDArray[np.float64]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The largest s(q, v) idf(q) over the query's words for each word of the text, and that s: (vocabulary,)."""
    weighted = np.zeros(len(asked.vocabulary), np.float32)
    similarity = np.zeros(len(asked.vocabulary), np.float32)
    everyone = np.arange(len(asked.vocabulary))
    for first, similar in asked.similarities(vectors):
        values = similar * idf[first : first + similar.shape[1]].astype(np.float32)
        best = values.argmax(axis=1)
        better = values[everyone, best] > weighted
        weighted[better] = values[everyone, best][better]
        similarity[better] = similar[everyone, best][better]
    return weighted, similarity


def _best_of_units(similar: NDArray[np.float32], postings: Postings) -> tuple[float, NDArray[np.float32]]:
    """A query word's df, and its largest similarity to a word of each unit: (units,)."""
    best = np.zeros(postings.n_units, np.float32)
    values = similar[postings.words]
    places = np.flatnonzero(values)
    sizes = postings.stops[places + 1] - postings.stops[places]
    # all postings of these words: for each word the range from its first to its last
    ends = np.cumsum(sizes)
    shift = np.repeat(postings.stops[places] - (ends - sizes), sizes)
    units = postings.units[np.arange(len(shift)) + shift]
    np.maximum.at(best, units, np.repeat(values[places], sizes))
    return float(values[places] @ sizes), best


def _largest_around(
    values: NDArray[np.float32], places: NDArray[np.int64], length: int
) -> Iterator[NDArray[np.float32]]:
    """The largest value among each unit and those around it in the same text, by `REACH`: (units,)."""
    spaced = np.zeros(length, np.float32)
    spaced[places] = values
    for step in _STEPS:
        wider = spaced.copy()
        np.maximum(wider[step:], spaced[:-step], out=wider[step:])
        np.maximum(wider[:-step], spaced[step:], out=wider[:-step])
        spaced = wider
        yield spaced[places]
