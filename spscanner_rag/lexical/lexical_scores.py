"""Scores of a query's words in every unit of a text or a collection.

Everything is relative to the collection, that is, the texts that are searched: its
units are BM25's documents.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lexical.bm25 import REACH, bm25_scores, rarity
from spscanner_rag.lexical.moments import Moments, moments_of, standardized_by
from spscanner_rag.lexical.query_counts import QueryCounts
from spscanner_rag.lexical.query_on_words import QueryOnWords
from spscanner_rag.lexical.soft_match import soft_scores
from spscanner_rag.lexical.text_scores import TextStatistics, text_statistics
from spscanner_rag.lexical.word_vectors import WordVectors
from spscanner_rag.text.languages import ENGLISH


class SoftStatistics(NamedTuple):
    """Statistics of a query over all units, to which its soft matches are relative."""

    idf: NDArray[np.float64]  # (query words,)
    # of the soft scores of the units and, by `REACH`, of their surroundings
    moments: tuple[Moments, ...]


@dataclass(frozen=True, slots=True)
class LexicalStatistics:
    """Statistics of a query over all units, to which its matches are relative.

    The units are those of a text or of a collection.
    """

    idf: NDArray[np.float64]  # (stems,) of the query
    mean_words: tuple[float, ...]  # of a unit and, by `REACH`, of its surroundings
    moments: tuple[Moments, ...]  # of their BM25 scores
    soft: SoftStatistics | None = None
    language: str = ENGLISH  # in which the query was cut and stemmed
    texts: TextStatistics | None = None  # if whole texts are compared


@dataclass(frozen=True, slots=True)
class MatchOptions:
    """Options of the match, which depend on the checkpoint.

    Parameters
    ----------
    surroundings : bool, default False
        Whether the text around each unit is scored as well.
    least_units : int, default 0
        Statistics are computed as if there were at least this many units.
    vectors : WordVectors, optional
        For the soft match, which needs the surroundings.
    texts : bool, default False
        Whether texts are also compared as wholes, which needs the surroundings.
    """

    surroundings: bool = False
    least_units: int = 0
    vectors: WordVectors | None = None
    texts: bool = False


PLAIN_MATCH = MatchOptions()


@dataclass(frozen=True, slots=True)
class LexicalScores:
    """The scores of a query's words in every unit of a text or a collection."""

    counts: QueryCounts
    statistics: LexicalStatistics  # the scores are relative to these
    # (units,) each: of the unit and, by `REACH`, of its surroundings
    bm25: tuple[NDArray[np.float64], ...]
    soft: NDArray[np.float64] | None = None  # (4, units) of the soft match

    def standardized(self) -> list[NDArray[np.float64]]:
        """Z-scores of each of ``bm25``: (units,)."""
        return standardized_by(self.statistics.moments, self.bm25)


def lexical_scores(
    query_on_words: QueryOnWords,
    options: MatchOptions,
    statistics: LexicalStatistics | None = None,
) -> LexicalScores:
    """Score a query in every unit of a text or a collection.

    The scores are relative to ``statistics``, by default those of these units.
    """
    counts = query_on_words.counts()
    if statistics is None:
        idf = rarity(counts, options.least_units)
        mean_words, bm25 = _bm25_of_reaches(counts, idf, options, None)
        moments = moments_of(bm25, options.least_units)
        language = query_on_words.language
        statistics = LexicalStatistics(idf, mean_words, moments, None, language)
        if options.texts and len(counts.text_starts) > 1:
            unit_z = standardized_by(moments, bm25)
            texts = text_statistics(counts, unit_z)
            statistics = replace(statistics, texts=texts)
    else:
        _, bm25 = _bm25_of_reaches(
            counts, statistics.idf, options, statistics.mean_words
        )
    if not options.surroundings or options.vectors is None:
        return LexicalScores(counts, statistics, bm25)
    soft_idf = None if statistics.soft is None else statistics.soft.idf
    soft_idf, soft = soft_scores(
        query_on_words, options.vectors, options.least_units, soft_idf
    )
    if statistics.soft is None:
        soft_moments = moments_of([*soft], options.least_units)
        soft_statistics = SoftStatistics(soft_idf, soft_moments)
        statistics = replace(statistics, soft=soft_statistics)
    return LexicalScores(counts, statistics, bm25, soft)


def _bm25_of_reaches(
    counts: QueryCounts,
    idf: NDArray[np.float64],
    options: MatchOptions,
    mean_words: Sequence[float] | None,
) -> tuple[tuple[float, ...], tuple[NDArray[np.float64], ...]]:
    """BM25 of each unit and, by `REACH`, of its surroundings, with mean lengths."""
    reaches = (0, *REACH) if options.surroundings else (0,)
    means = []
    scores = []
    for number, reach in enumerate(reaches):
        mean = None if mean_words is None else mean_words[number]
        mean, scores_of_reach = bm25_scores(counts, idf, reach, mean)
        means.append(mean)
        scores.append(scores_of_reach)
    return tuple(means), tuple(scores)
