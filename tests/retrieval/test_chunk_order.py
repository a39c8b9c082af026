"""Chunks without offsets are ordered by what they share."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_rag.retrieval.chunk_location import SHORTEST_OVERLAP
from spscanner_rag.retrieval.chunk_order import order_by_overlap

DOCUMENT = "".join(random.Random(0).choices("abcdefgh .", k=15_000))


@settings(max_examples=40)
@given(st.integers(40, 400), st.integers(SHORTEST_OVERLAP, 39), st.integers(0, 2**32), st.booleans())
def test_overlapping_chunks_are_put_in_order(size: int, overlap: int, seed: int, shuffled: bool) -> None:
    starts = list(range(0, len(DOCUMENT) - overlap, size - overlap))
    chunks = [DOCUMENT[start : start + size] for start in starts]
    order = list(range(len(chunks)))
    if shuffled:
        random.Random(seed).shuffle(order)
    found = order_by_overlap([chunks[number] for number in order])
    assert [order[number] for number in found] == list(range(len(chunks)))


@settings(max_examples=100)
@given(st.lists(st.text(st.sampled_from("ab"), max_size=60), max_size=12))
def test_each_comes_once(texts: list[str]) -> None:
    assert sorted(order_by_overlap(texts)) == list(range(len(texts)))


@pytest.mark.parametrize(
    ("texts", "order"),
    [
        ([], []),
        (["one"], [0]),
        (["Nothing is shared here at all.", "Nor is it here, it seems."], [0, 1]),
        (["it came to the harbour at dawn.", "x", "In May it came to the harbour"], [1, 2, 0]),
        (["-" * 40, "-" * 40, "-" * 40], [0, 1, 2]),
        (["b" * 20 + "a" * 20, "a" * 20 + "b" * 20], [0, 1]),  # a circle
    ],
)
def test_order(texts: list[str], order: list[int]) -> None:
    assert order_by_overlap(texts) == order


def test_many_equal_beginnings_cost_little() -> None:
    texts = [f"{'| yes | no |' * 20}{number}" for number in range(2000)]
    assert sorted(order_by_overlap(texts)) == list(range(2000))
