"""The soft match: words of a text that mean about the same as words of the query.

s(q, v) is the similarity of a query word q and a text's word v (1 for words of the same
stem; stop words match no others), df(v) the number of units that contain v, and n the
number of units. A query word has

    df(q) = min(n, sum over v of s(q, v) df(v)),
    idf(q) = ln(1 + (n - df(q) + 0.5) / (df(q) + 0.5)),

and a unit, or its surroundings, has the score sum over q of idf(q) times the largest
s(q, v) of its words.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lexical.bm25 import REACH
from spscanner_rag.lexical.postings import Postings
from spscanner_rag.lexical.query_on_words import QueryOnWords
from spscanner_rag.lexical.word_vectors import WordVectors
from spscanner_rag.lexical.words import query_words

_STEPS = (1, 2, 5)
"""Windows of 3, 7 and 17 units (`REACH`) each consist of three windows of the width
before, this far apart."""


def soft_scores(
    query_on_words: QueryOnWords,
    vectors: WordVectors,
    least_units: int = 0,
    idf: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Soft scores of every unit of some texts.

    ``idf``, (query words,), is by default that of these texts. Returns it, and the
    scores of each unit and of the text around it by `REACH`: (4, units).
    """
    postings = query_on_words.postings
    n = max(postings.n_units, least_units)
    words = query_words(query_on_words.query, query_on_words.language)
    idf_of_words = np.zeros(len(words)) if idf is None else idf
    positions, length = _spaced_positions(postings)
    scores = np.zeros((1 + len(REACH), postings.n_units))
    for first, similarities in query_on_words.similarities(vectors):
        for number, of_word in enumerate(similarities.T, first):
            frequency, best = _best_of_units(of_word, postings)
            if idf is None:
                df = min(n, frequency)
                idf_of_words[number] = np.log1p((n - df + 0.5) / (df + 0.5))
            if frequency:
                largest = (best, *_largest_around(best, positions, length))
                for sums, values in zip(scores, largest, strict=True):
                    sums += idf_of_words[number] * values
    return idf_of_words, scores


def best_of_words(
    query_on_words: QueryOnWords, vectors: WordVectors, idf: NDArray[np.float64]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The largest s(q, v) idf(q) of each word v of the text, and that s(q, v).

    The largest is over the query's words q. Each array is (vocabulary,).
    """
    n_words = len(query_on_words.vocabulary)
    weighted = np.zeros(n_words, np.float32)
    similarity = np.zeros(n_words, np.float32)
    every_word = np.arange(n_words)
    for first, similarities in query_on_words.similarities(vectors):
        stop = first + similarities.shape[1]
        products = similarities * idf[first:stop].astype(np.float32)
        best = products.argmax(axis=1)
        best_products = products[every_word, best]
        better = best_products > weighted
        weighted[better] = best_products[better]
        similarity[better] = similarities[every_word, best][better]
    return weighted, similarity


def _best_of_units(
    similarities: NDArray[np.float32], postings: Postings
) -> tuple[float, NDArray[np.float32]]:
    """A query word's df, and its largest similarity to a word of each unit.

    ``similarities``, (vocabulary,), are those of the query word; the largest are
    (units,).
    """
    best = np.zeros(postings.n_units, np.float32)
    values = similarities[postings.words]
    similar_words = np.flatnonzero(values)
    sizes = postings.stops[similar_words + 1] - postings.stops[similar_words]
    # All postings of these words: for each word the range from its first to its last.
    ends = np.cumsum(sizes)
    shift = np.repeat(postings.stops[similar_words] - (ends - sizes), sizes)
    units = postings.units[np.arange(len(shift)) + shift]
    np.maximum.at(best, units, np.repeat(values[similar_words], sizes))
    return float(values[similar_words] @ sizes), best


def _spaced_positions(postings: Postings) -> tuple[NDArray[np.int64], int]:
    """Positions of units, with room for the largest window around each text.

    Returns them, (units,), and the number of all positions.
    """
    starts = postings.text_stops[:-1]
    units = np.arange(postings.n_units)
    n_spaces = np.searchsorted(starts, units, side="right")
    length = postings.n_units + (len(starts) + 1) * REACH[-1]
    return units + n_spaces * REACH[-1], length


def _largest_around(
    values: NDArray[np.float32], positions: NDArray[np.int64], length: int
) -> Iterator[NDArray[np.float32]]:
    """The largest value of each unit and those around it in the same text: (units,).

    There is one array for each of `REACH`.
    """
    spaced = np.zeros(length, np.float32)
    spaced[positions] = values
    for step in _STEPS:
        wider = spaced.copy()
        np.maximum(wider[step:], spaced[:-step], out=wider[step:])
        np.maximum(wider[:-step], spaced[step:], out=wider[:-step])
        spaced = wider
        yield spaced[positions]
