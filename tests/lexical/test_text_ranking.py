"""Ranking texts: each by its best unit, with the scores that `CollectionIndex.best_texts` gives them."""

import numpy as np
import pytest

from spscanner_rag.lexical.bm25 import standardized
from spscanner_rag.lexical.collection_index import N_SCORES, CollectionIndex, TextRanking
from spscanner_rag.lexical.match import MatchOptions, lexical_scores

TEXTS = [
    ["Anna went home. ", "It was cold. "],
    [],
    ["The ship left. ", "The storm took the ship. ", "Anna was on the ship."],
    ["Soup is hot. "],
    ["A ship is a boat. ", "Boats float. "],
]
QUERY = "Was Anna on the ship?"


def test_a_text_has_the_sum_of_its_best_unit() -> None:
    index = CollectionIndex.of(TEXTS)
    ranking = TextRanking.of(index.asked(QUERY))
    assert sorted(ranking.texts) == [0, 2, 4]
    assert [len(ranking.scores_of(text)) for text in range(len(TEXTS))] == [len(units) for units in TEXTS]
    assert ranking.best.tolist() == [ranking.scores_of(text).max() for text in ranking.texts]
    assert ranking.best.tolist() == sorted(ranking.best, reverse=True)
    bm25 = lexical_scores(index.asked(QUERY), MatchOptions(surroundings=True)).bm25
    assert len(bm25) == N_SCORES
    np.testing.assert_allclose(ranking.unit_scores, sum(map(standardized, bm25)))
    expected = [
        (str(text), score / N_SCORES) for text, score in zip(ranking.texts, ranking.best, strict=True)
    ]
    assert index.best_texts(QUERY) == expected


@pytest.mark.parametrize("texts", [[], [[]], TEXTS])
def test_nothing_matches(texts: list[list[str]]) -> None:
    ranking = TextRanking.of(CollectionIndex.of(texts).asked("volcano"))
    assert len(ranking.texts) == len(ranking.best) == 0
