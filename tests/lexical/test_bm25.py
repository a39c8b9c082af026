"""BM25 of surroundings and of whole texts."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.lexical import bm25
from spscanner_rag.lexical.bm25 import mean_words, scores_around, sums_around, tempered, text_scores
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.lexical.match import MatchOptions, lexical_scores, match_query
from spscanner_rag.lexical.postings import QueryCounts, count_stems, merged, text_postings
from spscanner_rag.lexical.words import index_words

texts_of_words = st.lists(
    st.lists(st.lists(st.integers(0, 5), max_size=4), max_size=12), min_size=1, max_size=4
)


def counts_of(texts: list[list[list[int]]]) -> QueryCounts:
    parts = []
    for units in texts:
        words = np.array([word for unit in units for word in unit], np.int32)
        numbers = np.repeat(np.arange(len(units), dtype=np.int32), [len(unit) for unit in units])
        parts.append(text_postings(words, numbers, len(units)))
    return count_stems([merged(parts)], np.array([0, 1, 2, -1, 0, -1]), 3)


def scores_of(counts: QueryCounts) -> list[np.ndarray]:
    means = tuple(
        mean_words(sums_around(counts.words_per_unit, reach, counts.text_starts)) for reach in bm25.REACH
    )
    return list(scores_around(counts, np.array([0.7, 1.3, 2.9]), means))


@given(texts_of_words)
def test_rare_stems_score_as_frequent_ones(texts: list[list[list[int]]]) -> None:
    counts = counts_of(texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bm25, "_RARE", 10**9)
        everywhere = scores_of(counts)
        patch.setattr(bm25, "_RARE", 0)
        for here, there in zip(scores_of(counts), everywhere, strict=True):
            np.testing.assert_array_equal(here, there)


def test_large_z_scores_grow_by_their_logarithm() -> None:
    z = np.array([-9.0, 0.0, 4.0, 5.0, 3 + math.e])
    np.testing.assert_allclose(tempered(z), [-9, 0, 4, 4 + math.log(2), 5])


NO_TOKENS = np.zeros(0, np.int32)
COMPARED = MatchOptions(surroundings=True, texts=True)
QUERY = "Who repaired the lighthouse at Saltmere?"
TEXTS = [
    ["The lighthouse stands on a rock. ", "It was repaired in May. ", "Saltmere paid for it."],
    ["A lighthouse needs oil. ", "Somebody carried it up."],
    ["Soup is cooked slowly. ", "Salt comes last. "],
]


def collection(texts: list[list[str]]) -> CollectionIndex:
    return CollectionIndex.of(texts)


def losses(texts: list[list[str]], query: str = QUERY, options: MatchOptions = COMPARED) -> list[float]:
    """What each text's whole loses to the best one."""
    statistics = collection(texts).statistics(query, options)
    return [
        match_query(index_words(text), query, NO_TOKENS, NO_TOKENS, options, statistics).text_score
        for text in texts
    ]


def test_a_score_is_the_whole_text_s_and_its_best_unit_s() -> None:
    index = collection(TEXTS)
    asked = index.asked(QUERY)
    scores = lexical_scores(asked, COMPARED)
    statistics = scores.statistics.texts
    assert statistics is not None
    lengths = [sum(len(index_words([unit]).numbers) for unit in text) for text in TEXTS]
    stems = [{"repair": 1, "lighthous": 1, "saltmer": 1}, {"lighthous": 1}, {}]
    rarity = {"repair": 1, "lighthous": 2, "saltmer": 1}
    mean = sum(lengths) / 3
    whole = [
        sum(
            math.log1p((3 - rarity[stem] + 0.5) / (rarity[stem] + 0.5))
            * times
            * 2.5
            / (times + 1.5 * (0.25 + 0.75 * length / mean))
            for stem, times in own.items()
        )
        for own, length in zip(stems, lengths, strict=True)
    ]
    z = (np.array(whole) - np.mean(whole)) / np.std(whole)
    units = np.mean(scores.standardized(), axis=0)  # none is above 4 here
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
