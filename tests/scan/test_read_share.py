"""The likeliest sentences are read, with those around them, within the budget."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.scan.read_share import (
    AUTO_SHARE,
    SHORT_TOKENS,
    likeliest_stretches,
    token_budget,
)
from spscanner_rag.scorers import Read

TEXTS = st.lists(
    st.lists(st.tuples(st.floats(-9, 9, width=32), st.integers(0, 40)), max_size=30),
    min_size=1,
    max_size=4,
)


@pytest.mark.parametrize(
    ("read", "n_tokens", "budget"),
    [
        ("all", 10**6, None),
        (1.0, 10**6, None),
        ("auto", SHORT_TOKENS, None),
        ("auto", 10**6, round(AUTO_SHARE * 10**6)),
        (0.0, 100, 0),
        (0.5, 100, 50),
    ],
)
def test_the_budget_is_a_share_of_the_tokens(
    read: Read, n_tokens: int, budget: int | None
) -> None:
    assert token_budget(read, n_tokens) == budget


@given(TEXTS, st.integers(0, 600))
def test_stretches_keep_to_the_budget_and_are_apart(
    texts: list[list[tuple[float, int]]], budget: int
) -> None:
    estimates = [np.array([score for score, _ in text], np.float32) for text in texts]
    unit_tokens = [np.array([n for _, n in text], np.int64) for text in texts]
    stretches_by_text = likeliest_stretches(estimates, unit_tokens, budget)
    assert len(stretches_by_text) == len(texts)
    n_tokens = 0
    for stretches, tokens in zip(stretches_by_text, unit_tokens, strict=True):
        before = -2
        for first, last in stretches:
            assert before + 1 < first <= last < len(tokens)
            before = last
            n_tokens += int(tokens[first : last + 1].sum())
    assert n_tokens <= budget


def test_the_likeliest_sentences_of_all_texts_come_first() -> None:
    unlikely = np.zeros(20, np.float32)
    likely = np.zeros(20, np.float32)
    likely[10] = 5
    tokens = np.full(20, 10)
    stretches = likeliest_stretches([unlikely, likely], [tokens, tokens], 70)
    assert stretches == [[], [(6, 12)]]
