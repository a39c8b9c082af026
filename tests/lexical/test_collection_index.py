"""An index equals counting all texts together, however they were added."""

import copy
import pickle
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_rag.lexical.bm25 import REACH
from spscanner_rag.lexical.collection_index import N_SCORES, CollectionIndex
from spscanner_rag.lexical.lexical_scores import (
    PLAIN_MATCH,
    LexicalStatistics,
    MatchOptions,
    lexical_scores,
)
from spscanner_rag.lexical.moments import Moments
from spscanner_rag.lexical.word_vectors import WordVectors
from spscanner_rag.lexical.words import query_stems, query_words, stems_of
from spscanner_rag.text.languages import STOP_WORDS
from tests.lexical.slow_bm25 import slow_bm25, slow_idf, slow_moments, stems, windows
from tests.lexical.tables import similarities, table_of

WORDS = ["ship", "ships", "boat", "Anna", "snow", "storm", "the", "a"]
QUERY = "Did Anna see the ship or a storm?"
texts = st.lists(
    st.lists(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), max_size=12),
    max_size=8,
)


def tiny_vectors() -> WordVectors:
    """Vectors in which a ship is near a boat, and snow near a storm."""
    generator = np.random.default_rng(3)
    names = ["ship", "ships", "boat", "anna", "snow", "storm", "soup"]
    table = generator.normal(size=(len(names), 8))
    for word, near in (("boat", "ship"), ("snow", "storm"), ("ships", "ship")):
        table[names.index(word)] = table[names.index(near)] + 0.4 * generator.normal(
            size=8
        )
    return table_of(names, table)


VECTORS = tiny_vectors()
SOFT = MatchOptions(surroundings=True, vectors=VECTORS)
AROUND = MatchOptions(surroundings=True)


def slow_soft(
    parts: Sequence[Sequence[str]], reach: int, idf: dict[str, float]
) -> list[float]:
    scores = []
    for text in windows(parts, reach):
        score = 0.0
        for q, rarity in idf.items():
            words = re.findall(r"\w+", text.lower())
            score += rarity * max((slow_similarity(q, v) for v in words), default=0)
        scores.append(score)
    return scores


def slow_similarity(q: str, v: str) -> float:
    if stems_of([q]) == stems_of([v]):
        return 1.0
    return 0.0 if v in STOP_WORDS else float(similarities(VECTORS, [q], [v])[0, 0])


def assert_right(
    found: LexicalStatistics, parts: Sequence[Sequence[str]], least: int
) -> None:
    """Compare with a slow count of all texts."""
    units = [set(stems(unit)) for part in parts for unit in part]
    n = max(len(units), least)
    idf = {
        stem: slow_idf(n, sum(stem in unit for unit in units))
        for stem in query_stems(QUERY)
    }
    np.testing.assert_allclose(found.idf, list(idf.values()))
    for reach, moments in zip((0, *REACH), found.moments, strict=True):
        np.testing.assert_allclose(
            moments, slow_moments(slow_bm25(parts, reach, idf), least, reach), atol=1e-6
        )
    if found.soft is None:
        return
    words = [set(re.findall(r"\w+", unit.lower())) for part in parts for unit in part]
    vocabulary = set().union(*words)
    soft = {
        q: slow_idf(
            n,
            sum(
                slow_similarity(q, v) * sum(v in unit for unit in words)
                for v in vocabulary
            ),
        )
        for q in query_words(QUERY)
    }
    np.testing.assert_allclose(found.soft.idf, list(soft.values()), atol=1e-5)
    for reach, moments in zip((0, *REACH), found.soft.moments, strict=True):
        np.testing.assert_allclose(
            moments,
            slow_moments(slow_soft(parts, reach, soft), least, reach),
            atol=1e-5,
        )


def assert_same(left: LexicalStatistics, right: LexicalStatistics) -> None:
    np.testing.assert_array_equal(left.idf, right.idf)
    for name in ("mean_words", "moments"):
        assert getattr(left, name) == getattr(right, name), name
    if left.soft is not None and right.soft is not None:
        np.testing.assert_allclose(left.soft.idf, right.soft.idf)
        np.testing.assert_allclose(left.soft.moments, right.soft.moments)


@settings(max_examples=20)
@given(texts, st.sampled_from([0, 40]), st.sampled_from([1, 3, 10]))
def test_equal_to_counting_all_texts_at_once(
    parts: list[list[str]], least_units: int, asked: int
) -> None:
    index = CollectionIndex()
    for number, part in enumerate(parts):
        index.add(str(number), part)
        if number % asked == 0:
            index.statistics(
                QUERY, AROUND
            )  # so that later texts join texts that were already searched
    assert_right(
        index.statistics(QUERY, MatchOptions(True, least_units, VECTORS)),
        parts,
        least_units,
    )
    assert (len(index), index.n_units) == (len(parts), sum(map(len, parts)))


@settings(max_examples=20)
@given(texts, st.data())
def test_equal_after_removal(parts: list[list[str]], data: st.DataObject) -> None:
    index = CollectionIndex.of(parts)
    gone = data.draw(st.sets(st.sampled_from(range(len(parts))))) if parts else set()
    if data.draw(st.booleans()):
        index.statistics(
            QUERY, SOFT
        )  # so that texts are removed from a part that is already settled
    index.remove(*map(str, gone))
    kept = [part for number, part in enumerate(parts) if number not in gone]
    assert index.keys == [
        str(number) for number in range(len(parts)) if number not in gone
    ]
    assert_same(
        index.statistics(QUERY, SOFT), CollectionIndex.of(kept).statistics(QUERY, SOFT)
    )
    for number in gone:
        index.add(str(number), parts[number])
    assert sorted(index.keys) == sorted(map(str, range(len(parts))))


@settings(max_examples=20)
@given(texts)
def test_equal_after_a_round_trip(parts: list[list[str]]) -> None:
    index = CollectionIndex.of(parts)
    for other in (
        CollectionIndex.from_arrays(index.to_arrays()),
        pickle.loads(pickle.dumps(index)),
        copy.deepcopy(index),
    ):
        assert other.keys == index.keys
        assert_same(other.statistics(QUERY, SOFT), index.statistics(QUERY, SOFT))
        other.add("new", ["Anna came home."])
        assert "new" not in index


def test_a_key_in_use_and_an_unknown_one() -> None:
    index = CollectionIndex.of([["The ship."]])
    with pytest.raises(ValueError, match="already has a text '0'"):
        index.add("0", ["Another."])
    with pytest.raises(KeyError, match="no text 'x'"):
        index.remove("0", "x")
    assert index.keys == ["0"]
    assert "0" in index
    assert index.n_units == 1


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("units", None, "has no 'units'"),
        ("units", np.array([9, 9, 9, 9], np.int32), "units of the index does not fit"),
        ("units", np.zeros(4), "expected integers"),
        ("times", np.zeros(1, np.uint16), "times of the index"),
        ("stops", np.array([0, 3, 2, 4], np.int64), "stops of the index"),
        ("words", np.array([0, 1, 7], np.int32), "words of the index"),
        ("text_stops", np.array([0, 1], np.int64), "text_stops of the index"),
        ("keys", np.frombuffer(b'["0", "0"]', np.uint8), "twice"),
        ("keys", np.frombuffer(b'{"0": 1}', np.uint8), "not a JSON list"),
        ("vocabulary", np.frombuffer(b"\xff", np.uint8), "not a JSON list"),
        ("keys", np.frombuffer(b"[" * 100_000, np.uint8), "not a JSON list"),
        *[
            ("languages", np.frombuffer(own, np.uint8), "languages for 2 texts")
            for own in (b"[]", b'["de", "en"]')
        ],
        ("stops", np.zeros(0, np.int64), "expected integers"),
        ("text_stops", np.zeros(0, np.int64), "expected integers"),
    ],
)
def test_damaged_arrays(name: str, value: object, message: str) -> None:
    arrays = CollectionIndex.of([["The ship. "], ["A ship."]]).to_arrays()
    if value is None:
        del arrays[name]
    else:
        arrays[name] = np.asarray(value)
    with pytest.raises(ValueError, match=message):
        CollectionIndex.from_arrays(arrays)


def test_threads_add_and_ask() -> None:
    index = CollectionIndex()

    def work(thread: int) -> None:
        for number in range(20):
            index.add(f"{thread}-{number}", ["The ship left. ", "Snow."])
            index.statistics("ship", AROUND)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert len(index) == 120
    assert index.statistics("ship", PLAIN_MATCH).idf[0] == pytest.approx(
        np.log1p(120.5 / 120.5)
    )


TEXTS = [
    ["Anna went home. ", "It was cold. "],
    [],
    ["The ship left. ", "The storm took the ship. ", "Anna was on the ship."],
    ["Soup is hot. "],
    ["A ship is a boat. ", "Boats float. "],
]
RANKED_QUERY = "Was Anna on the ship?"


def test_a_text_has_the_score_of_its_best_unit() -> None:
    index = CollectionIndex.of(TEXTS)
    bm25 = lexical_scores(
        index.query_on_words(RANKED_QUERY), MatchOptions(surroundings=True)
    ).bm25
    assert len(bm25) == N_SCORES
    units = sum(Moments.of(scores).standardize(scores) for scores in bm25) / N_SCORES
    stops = np.cumsum([0, *map(len, TEXTS)])
    best = {str(text): units[stops[text] : stops[text + 1]].max() for text in (0, 2, 4)}
    found = index.best_texts(RANKED_QUERY)
    assert [score for _, score in found] == sorted(
        (score for _, score in found), reverse=True
    )
    assert dict(found) == pytest.approx(best)
    assert index.best_texts(RANKED_QUERY, 1) == found[:1]
    assert index.best_texts("volcano") == CollectionIndex().best_texts("ship") == []
    assert CollectionIndex.of([[]]).best_texts("volcano") == []
