"""The index of a collection: equal to counting all its texts at once, however they were added."""

import copy
import pickle
import threading
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.text import collection_index
from spscanner_rag.text.collection_index import CollectionIndex
from spscanner_rag.text.lexical import LexicalStatistics, lexical_statistics, match_query
from spscanner_rag.text.words import QueryCounts, count_stems, index_words, query_stems

WORDS = ["ship", "ships", "Anna", "snow", "storm", "the", "a"]
QUERY = "Did Anna see the ship or a storm?"
texts = st.lists(
    st.lists(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), max_size=12), max_size=8
)


def counted_apart(parts: Sequence[Sequence[str]], query: str) -> QueryCounts:
    """Count the texts one by one, and put the counts side by side."""
    stems = query_stems(query)
    counts = [count_stems(index_words(part), stems) for part in parts]
    firsts = np.cumsum([0, *(len(part) for part in parts)])
    return QueryCounts(
        np.concatenate([np.zeros(0, int), *(c.units + f for c, f in zip(counts, firsts, strict=False))]),
        np.concatenate([np.zeros(0, int), *(c.stems for c in counts)]),
        np.concatenate([np.zeros(0, int), *(c.times for c in counts)]),
        len(stems),
        np.concatenate([np.zeros(0), *(c.words_per_unit for c in counts)]),
        firsts[:-1],
    )


def assert_same(left: LexicalStatistics, right: LexicalStatistics) -> None:
    np.testing.assert_array_equal(left.idf, right.idf)
    for name in ("mean_words", "own", "mean_words_around", "around"):
        assert getattr(left, name) == getattr(right, name), name


@given(texts, st.sampled_from([0, 40]), st.sampled_from([1, 7, 10**6]))
def test_equal_to_counting_all_texts_at_once(parts: list[list[str]], least_units: int, pending: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collection_index, "_MOST_PENDING", pending)
        index = CollectionIndex.of(parts)
    wanted = lexical_statistics(counted_apart(parts, QUERY), surroundings=True, least_units=least_units)
    assert_same(index.statistics(QUERY, surroundings=True, least_units=least_units), wanted)
    assert (len(index), index.n_units) == (len(parts), sum(map(len, parts)))


@given(texts, st.data())
def test_equal_after_removal(parts: list[list[str]], data: st.DataObject) -> None:
    index = CollectionIndex.of(parts)
    gone = data.draw(st.sets(st.sampled_from(range(len(parts))))) if parts else set()
    if data.draw(st.booleans()):
        index.statistics(QUERY)  # so that texts are removed from a part that was settled
    index.remove(*map(str, gone))
    kept = [part for number, part in enumerate(parts) if number not in gone]
    assert index.keys == [str(number) for number in range(len(parts)) if number not in gone]
    assert_same(
        index.statistics(QUERY, surroundings=True),
        CollectionIndex.of(kept).statistics(QUERY, surroundings=True),
    )
    for number in gone:
        index.add(str(number), parts[number])
    assert sorted(index.keys) == sorted(map(str, range(len(parts))))


@given(texts)
def test_equal_after_a_round_trip(parts: list[list[str]]) -> None:
    index = CollectionIndex.of(parts)
    for other in (
        CollectionIndex.from_arrays(index.to_arrays()),
        pickle.loads(pickle.dumps(index)),
        copy.deepcopy(index),
    ):
        assert other.keys == index.keys
        assert_same(other.statistics(QUERY, surroundings=True), index.statistics(QUERY, surroundings=True))
        other.add("new", ["Anna came home."])
        assert "new" not in index


@given(
    st.lists(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), max_size=20),
    st.sampled_from([0, 300]),
)
def test_one_text_is_its_own_collection(units: list[str], least_units: int) -> None:
    words, nothing = index_words(units), np.zeros(0, np.int32)
    statistics = CollectionIndex.of([units]).statistics(QUERY, surroundings=True, least_units=least_units)
    alone = match_query(words, QUERY, nothing, nothing, surroundings=True, least_units=least_units)
    among = match_query(words, QUERY, nothing, nothing, surroundings=True, statistics=statistics)
    np.testing.assert_array_equal(alone.prior, among.prior)
    assert alone.surroundings is not None
    assert among.surroundings is not None
    np.testing.assert_array_equal(alone.surroundings, among.surroundings)


def test_a_word_that_is_common_elsewhere_counts_less() -> None:
    soup = ["Stir the soup. ", "Serve it."]
    alone = CollectionIndex.of([soup]).statistics("soup")
    among = CollectionIndex.of([soup, *(["More soup. ", "Snow."] for _ in range(9))]).statistics("soup stir")
    assert among.idf[1] > among.idf[0]
    assert among.idf[0] == pytest.approx(np.log1p(10.5 / 10.5))
    assert alone.idf[0] == pytest.approx(np.log1p(1.5 / 1.5))


def test_best_texts() -> None:
    index = CollectionIndex.of(
        [
            ["Anna went home. ", "It was cold. "],
            ["The ship left. ", "The storm took the ship. ", "Anna was on the ship."],
            ["Soup is hot. "],
            [],
            ["A ship is a boat. ", "Boats float. ", "They sink, too."],
        ]
    )
    ranked = index.best_texts("Was Anna on the ship in the storm?")
    assert ranked[0][0] == "1"
    assert {key for key, _ in ranked} == {"0", "1", "4"}
    assert [score for _, score in ranked] == sorted((score for _, score in ranked), reverse=True)
    assert index.best_texts("Was Anna on the ship in the storm?", 1) == ranked[:1]
    assert index.best_texts("volcano") == index.best_texts("?") == []
    assert CollectionIndex().best_texts("ship") == []


def test_a_key_in_use_and_an_unknown_one() -> None:
    index = CollectionIndex.of([["The ship."]])
    with pytest.raises(ValueError, match="has a text '0' already"):
        index.add("0", ["Another."])
    with pytest.raises(KeyError, match="no text 'x'"):
        index.remove("0", "x")
    assert index.keys == ["0"]
    assert "0" in index
    assert index.n_units == 1


def test_keys_of_any_kind() -> None:
    keys = ["", "a\0b", "\ud800", "x" * 5000, "Ω\n"]
    index = CollectionIndex()
    for key in keys:
        index.add(key, ["The ship."])
    assert CollectionIndex.from_arrays(index.to_arrays()).keys == keys


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
    errors: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            for number in range(20):
                index.add(f"{thread}-{number}", ["The ship left. ", "Snow."])
                index.statistics("ship", surroundings=True)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(index) == 120
    assert index.statistics("ship").idf[0] == pytest.approx(np.log1p(120.5 / 120.5))
