"""BM25 of surroundings and of whole texts."""

import numpy as np
import pytest

from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.lexical.lexical_scores import MatchOptions, lexical_scores
from spscanner_rag.lexical.match import match_query
from spscanner_rag.lexical.text_scores import text_scores
from spscanner_rag.lexical.words import index_words
from tests.lexical.slow_bm25 import slow_bm25, slow_idf

NO_TOKENS = np.zeros(0, np.int32)


COMPARED = MatchOptions(surroundings=True, texts=True)


QUERY = "Who repaired the lighthouse at Saltmere?"


TEXTS = [
    [
        "The lighthouse stands on a rock. ",
        "It was repaired in May. ",
        "Saltmere paid for it.",
    ],
    ["A lighthouse needs oil. ", "Somebody carried it up."],
    ["Soup is cooked slowly. ", "Salt comes last. "],
]


def collection(texts: list[list[str]]) -> CollectionIndex:
    return CollectionIndex.of(texts)


def losses(
    texts: list[list[str]], query: str = QUERY, options: MatchOptions = COMPARED
) -> list[float]:
    """By how much each whole text scores below the best one."""
    statistics = collection(texts).statistics(query, options)
    return [
        match_query(
            index_words(text), query, NO_TOKENS, NO_TOKENS, options, statistics
        ).text_score
        for text in texts
    ]


def test_a_score_is_the_whole_text_s_and_its_best_unit_s() -> None:
    index = collection(TEXTS)
    asked = index.query_on_words(QUERY)
    scores = lexical_scores(asked, COMPARED)
    statistics = scores.statistics.texts
    assert statistics is not None
    idf = {
        "repair": slow_idf(3, 1),
        "lighthous": slow_idf(3, 2),
        "saltmer": slow_idf(3, 1),
    }
    whole = slow_bm25([["".join(text)] for text in TEXTS], 0, idf)
    z = (np.array(whole) - np.mean(whole)) / np.std(whole)
    units = np.mean(scores.standardized(), axis=0)  # none exceeds 4 here
    assert max(map(np.max, scores.standardized())) < 4
    best = [units[:3].max(), units[3:5].max(), units[5:].max()]
    found = text_scores(scores.counts, scores.standardized(), statistics)
    np.testing.assert_allclose(found, z + best)
    assert statistics.best == pytest.approx(found.max())


@pytest.mark.parametrize("texts", [TEXTS[:1], [[]], [], [["One text. "], []]])
def test_nothing_to_compare(texts: list[list[str]]) -> None:
    statistics = collection(texts).statistics(QUERY, COMPARED)
    assert (statistics.texts is None) == (len(texts) < 2)
    assert losses(texts) == [0.0] * len(texts)
