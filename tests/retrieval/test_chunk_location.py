"""Chunks found in their source, and the text that two chunks share."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_rag.retrieval.chunk_location import ChunkLocator
from spscanner_rag.retrieval.overlaps import (
    SHORTEST_OVERLAP,
    order_by_overlap,
    overlap,
)

SOURCE = "The  well\r\nwas dry.\u3000The bell\n\nrang. The  well\nwas dry."


@pytest.mark.parametrize(
    ("text", "start", "expected"),
    [
        ("was dry.", None, (11, 19, True)),
        ("was dry.", 11, (11, 19, True)),
        ("was dry.", 12, (46, 54, True)),  # the next occurrence after a wrong offset
        ("was dry.", 999, (11, 19, True)),
        ("was dry.", -1, (11, 19, True)),
        ("The well was dry.", None, (0, 19, False)),
        ("The well was dry.", 3, (36, 54, False)),
        (" rang.\t", None, (30, 35, False)),
        ("Thewell", None, (0, 9, False)),
        ("The cat", None, None),
        ("", None, None),
        ("", 3, None),
        (" \n", 3, None),
    ],
)
def test_locate(
    text: str, start: int | None, expected: tuple[int, int, bool] | None
) -> None:
    found = ChunkLocator(SOURCE).locate(text, start)
    assert found == expected
    assert all(type(place) is not np.int64 for place in found or ())


def test_chunks_in_reading_order_stand_one_behind_the_other() -> None:
    locator = ChunkLocator(SOURCE)
    chunks = ["The well was dry.", "The bell rang.", "The well was dry.", "was dry."]
    assert [locator.locate(chunk) for chunk in chunks] == [
        (0, 19, False),
        (20, 35, False),
        (36, 54, False),
        (46, 54, True),
    ]
    rows = ChunkLocator("aaaa")
    assert [rows.locate("aa") for _ in range(4)] == [
        (0, 2, True),
        (1, 3, True),
        (2, 4, True),
        (0, 2, True),
    ]


def test_every_white_space_character_is_known() -> None:
    source = "a" + "".join(c for c in map(chr, range(0x110000)) if c.isspace()) + "b"
    assert ChunkLocator(source).locate("a b") == (0, len(source), False)
    assert isinstance(ChunkLocator(source)._visible[1], np.ndarray)


@settings(max_examples=60)
@given(st.text("ab", max_size=80), st.text("ab", max_size=80))
def test_overlap_is_the_longest(before: str, after: str) -> None:
    longest = max(
        n
        for n in range(min(len(before), len(after)) + 1)
        if before.endswith(after[:n]) or not n
    )
    assert overlap(before, after) == (longest if longest >= SHORTEST_OVERLAP else 0)


def test_overlap_gives_up_on_endless_repetition() -> None:
    assert overlap("a" * 1_000_000 + "b", "a" * 1_000_000 + "c") == 0


@given(
    st.text("ab ", min_size=20, max_size=200),
    st.text("ab ", min_size=20, max_size=120),
    st.data(),
)
def test_every_chunk_of_the_source_is_found(
    source: str, other: str, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(source)))
    chunk = source[start : data.draw(st.integers(start, len(source)))]
    for text in (chunk, other, " ".join(chunk)):
        found = ChunkLocator(source).locate(text)
        squeezed = "".join(text.split())
        assert (found is not None) == bool(
            squeezed and squeezed in "".join(source.split())
        )


DOCUMENT = "".join(random.Random(0).choices("abcdefgh .", k=15_000))


@settings(max_examples=40)
@given(
    st.integers(40, 400),
    st.integers(SHORTEST_OVERLAP, 39),
    st.integers(0, 2**32),
    st.booleans(),
)
def test_overlapping_chunks_are_put_in_order(
    size: int, shared: int, seed: int, shuffled: bool
) -> None:
    starts = list(range(0, len(DOCUMENT) - shared, size - shared))
    chunks = [DOCUMENT[start : start + size] for start in starts]
    order = list(range(len(chunks)))
    if shuffled:
        random.Random(seed).shuffle(order)
    found = order_by_overlap([chunks[number] for number in order])
    assert [order[number] for number in found] == list(range(len(chunks)))


@pytest.mark.parametrize(
    ("texts", "order"),
    [
        ([], []),
        (["one"], [0]),
        (["Nothing is shared here at all.", "Nor is it here, it seems."], [0, 1]),
        (
            ["it came to the harbour at dawn.", "x", "In May it came to the harbour"],
            [1, 2, 0],
        ),
        (["-" * 40, "-" * 40, "-" * 40], [0, 1, 2]),
        (["b" * 20 + "a" * 20, "a" * 20 + "b" * 20], [0, 1]),  # a circle
    ],
)
def test_order(texts: list[str], order: list[int]) -> None:
    assert order_by_overlap(texts) == order


def test_many_equal_beginnings_cost_little() -> None:
    texts = [f"{'| yes | no |' * 20}{number}" for number in range(2000)]
    assert sorted(order_by_overlap(texts)) == list(range(2000))
