"""BM25's wrong favourite: the sentence of a document that shares words with a question and does not answer it."""

import random

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lexical.match import PLAIN_MATCH, QueryOnWords, lexical_scores
from spscanner_rag.lexical.words import TextWords

_CHOICE = 3
"""One of this many best sentences is drawn."""


def wrong_favourite(
    scores: NDArray[np.float64], allowed: NDArray[np.bool_], draw: random.Random
) -> int | None:
    """One of the best units among those ``allowed``; None if there is none. Both arguments are (units,)."""
    best = np.argsort(-np.where(allowed, scores, -np.inf), kind="stable")[:_CHOICE]
    found = [int(unit) for unit in best if allowed[unit]]
    return draw.choice(found) if found else None


def bm25_scores(words: TextWords, query: str) -> NDArray[np.float64]:
    """BM25 of each unit of a document among its units: (units,)."""
    return lexical_scores(QueryOnWords.on_text(query, words), PLAIN_MATCH).bm25[0]
