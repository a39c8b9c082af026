"""Ranking texts by the words that their units share with a query."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lexical.bm25 import REACH
from spscanner_rag.lexical.match import MatchOptions, QueryOnWords, lexical_scores

N_SCORES = 1 + len(REACH)

_AROUND = MatchOptions(surroundings=True)


class TextRanking(NamedTuple):
    """The texts of a collection that share a word with a query, the best first.

    A unit's score is the sum of `N_SCORES` z-scores: those of its BM25 and of the BM25 of its surroundings, by
    `REACH`. A text has the score of its best unit.
    """

    texts: NDArray[np.int64]  # (matching texts,) their numbers; among equal scores in increasing order
    best: NDArray[np.float64]  # (matching texts,) their scores
    unit_scores: NDArray[np.float64]  # (units,) of every text, matching or not
    unit_stops: NDArray[np.int64]  # (texts + 1,): text i has the units unit_stops[i] to unit_stops[i + 1]

    @classmethod
    def of(cls, asked: QueryOnWords) -> Self:
        """Rank the texts of a collection."""
        scores = lexical_scores(asked, _AROUND)
        counts = scores.counts
        units = np.sum(scores.standardized(), axis=0)
        stops = np.append(counts.text_starts, np.int64(counts.n_units))
        filled = np.flatnonzero(np.diff(stops))  # texts with units
        best = np.full(len(counts.text_starts), -np.inf)
        best[filled] = np.maximum.reduceat(units, stops[filled])
        matched = np.unique(np.searchsorted(counts.text_starts, counts.units, side="right") - 1)
        texts = matched[np.argsort(-best[matched], kind="stable")]
        return cls(texts, best[texts], units, stops)

    def scores_of(self, text: int) -> NDArray[np.float64]:
        """The scores of a text's units: (units of the text,)."""
        return self.unit_scores[self.unit_stops[text] : self.unit_stops[text + 1]]
