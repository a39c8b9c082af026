"""How many texts are read: bounds of documents and tokens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.baselines.bm25 import BM25
from spscanner_rag.retrieval.read_bounds import ReadBounds
from spscanner_rag.retrieval.scorer_choice import ScorerChoice


def test_the_automatic_bound_is_lower_on_a_cpu(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    tokens = [60_000] * 4
    assert ReadBounds().on(ScorerChoice(scorer=BM25())).within(tokens) == [0, 1, 2]
    assert ReadBounds().on(ScorerChoice(device="cpu")).within(tokens) == [0]
    assert "1 documents of 60000 tokens are read, 3 are left out" in caplog.text
    assert ReadBounds(read_tokens=150_000).on(ScorerChoice(device="cpu")).within(
        tokens
    ) == [0, 1]
    assert ReadBounds(read_tokens=None).on(ScorerChoice(device="cpu")).within(
        tokens
    ) == [
        0,
        1,
        2,
        3,
    ]


@given(
    st.lists(st.integers(1, 50), max_size=12),
    st.none() | st.integers(1, 6),
    st.none() | st.integers(1, 100),
)
def test_bounds_hold_but_for_the_first(
    tokens: list[int], most: int | None, budget: int | None
) -> None:
    kept = ReadBounds(most, budget).within(tokens)
    assert kept == sorted(set(kept))
    assert kept[:1] == ([0] if tokens else [])
    assert most is None or len(kept) <= most
    total = sum(tokens[number] for number in kept)
    assert budget is None or total <= budget or kept == [0]
    for number in set(range(len(tokens))) - set(
        kept
    ):  # none is left out without a reason
        before = [other for other in kept if other < number]
        full = most is not None and len(before) >= most
        assert full or (
            budget is not None
            and sum(tokens[n] for n in before) + tokens[number] > budget
        )
