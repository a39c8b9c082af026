"""The order of pieces of one source: by offset, by link, as given."""

import random
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_rag.retrieval.reading_order import in_reading_order


class At(NamedTuple):
    key: str
    start: int | None = None
    previous: str | None = None
    next: str | None = None


def order(*pieces: At) -> list[str]:
    return [pieces[number].key for number in in_reading_order(range(len(pieces)), pieces)]


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([], ""),
        ([At("a", 5), At("b", 0), At("c", 5)], "bac"),  # of equal ones as given
        ([At("a"), At("b"), At("c")], "abc"),
        ([At("c"), At("b", next="c"), At("a", next="b")], "abc"),
        ([At("c", previous="b"), At("b", previous="a"), At("a")], "abc"),
        ([At("x"), At("b", previous="a"), At("y"), At("a")], "xaby"),
        ([At("b", next="x"), At("a", next="b"), At("c", previous="gone")], "abc"),
        ([At("c", 90), At("b", previous="a"), At("a", 10)], "abc"),
        ([At("x"), At("c", 90, previous="b"), At("b"), At("a", 10)], "abcx"),
        ([At("b", 50), At("a", 9, previous="b"), At("u", previous="b")], "abu"),  # offsets before links
        ([At("a", 0, next="u"), At("u", next="c"), At("c", 50), At("b", 25)], "aubc"),
        ([At("a", next="b"), At("b", next="c"), At("c", next="a")], "abc"),  # a circle
        ([At("a", next="a"), At("b", previous="b")], "ab"),
        ([At("a", next="b"), At("b", next="c"), At("c", next="b")], "abc"),
        ([At("a", next="c"), At("b", next="c"), At("c")], "acb"),
        ([At("k", 7), At("k"), At("k", next="k")], "kkk"),
    ],
)
def test_order(pieces: list[At], expected: str) -> None:
    assert order(*pieces) == list(expected)


KEYS = st.sampled_from("abcdefgh")


@settings(max_examples=60)
@given(
    st.lists(
        st.builds(At, KEYS, st.none() | st.integers(0, 50), st.none() | KEYS, st.none() | KEYS), max_size=10
    )
)
def test_each_comes_once_and_offsets_ascend(pieces: list[At]) -> None:
    numbers = list(range(len(pieces)))
    random.Random(len(pieces)).shuffle(numbers)
    found = in_reading_order(numbers, pieces)
    assert sorted(found) == sorted(numbers)
    starts = [start for number in found if (start := pieces[number].start) is not None]
    assert starts == sorted(starts)


def test_a_long_chain() -> None:
    n = 20_000
    pieces = [At(str(number), previous=str(number - 1)) for number in range(n)]
    random.Random(0).shuffle(pieces)
    assert order(*pieces) == [str(number) for number in range(n)]
