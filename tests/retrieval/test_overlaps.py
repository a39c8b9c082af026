"""The text that two chunks share, and the order of chunks by it."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_rag.retrieval.overlaps import (
    SHORTEST_OVERLAP,
    order_by_overlap,
    overlap,
)


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
