"""Tokens retrieved, and recall at equal budgets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from spscanner_rag.lab.evaluation.budget import recall_at_budgets, tokens_at, units_within
from spscanner_rag.results.coverage import Spans

SCORES = np.array([0.0, 3.0, 1.0, 2.0])
TOKENS = np.array([10, 50, 20, 40])
EDGES = np.array([0, 10, 60, 80, 120])
UNITS = Spans(EDGES[:-1], EDGES[1:])


def test_tokens_of_the_best() -> None:
    assert tokens_at(SCORES, TOKENS, (1, 2, 3, 50)) == {1: 50, 2: 90, 3: 110, 50: 120}
    assert tokens_at(np.zeros(0), np.zeros(0, np.int64), (1,)) == {1: 0}


@pytest.mark.parametrize(
    ("budget", "kept"),
    [
        (9, []),
        (10, [0]),
        (30, [2, 0]),
        (49, [3]),
        (50, [1]),
        (89, [1, 2, 0]),
        (90, [1, 3]),
        (120, [1, 3, 2, 0]),
    ],
)
def test_units_within(budget: int, kept: list[int]) -> None:
    assert units_within(SCORES, TOKENS, budget).tolist() == kept


def test_recall_at_budgets() -> None:
    # one sentence of evidence in unit 3, one half in unit 1 and half in unit 2
    sentences = Spans(np.array([85, 55]), np.array([90, 65]))
    found = recall_at_budgets(UNITS, SCORES, TOKENS, sentences, (9, 49, 50, 90))
    assert found == {9: 0.0, 49: 0.5, 50: 0.5, 90: 1.0}


def test_chunks_and_sentences_compare() -> None:
    # the same 100 characters, a token each, as 10 sentences and as 2 chunks
    fine = Spans(np.arange(0, 100, 10), np.arange(10, 110, 10))
    coarse = Spans(np.array([0, 50]), np.array([50, 100]))
    evidence = Spans(np.array([0, 30]), np.array([10, 40]))
    best = np.isin(np.arange(10), [0, 3]).astype(float)
    budgets = (10, 20, 50)
    assert recall_at_budgets(fine, best, np.full(10, 10), evidence, budgets) == {10: 0.5, 20: 1.0, 50: 1.0}
    assert recall_at_budgets(coarse, np.array([1.0, 0.0]), np.full(2, 50), evidence, budgets) == {
        10: 0.0,
        20: 0.0,
        50: 1.0,
    }


COSTS = st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 9)), min_size=1, max_size=30)


def columns(units: list[tuple[int, int]]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    scores, tokens = np.array(units).T
    return scores.astype(float), tokens


@settings(max_examples=60)
@given(COSTS, st.integers(1, 60))
def test_equals_a_plain_loop(units: list[tuple[int, int]], budget: int) -> None:
    scores, tokens = columns(units)
    kept: list[int] = []
    for unit in sorted(range(len(units)), key=lambda unit: -scores[unit]):
        if sum(tokens[kept]) + tokens[unit] <= budget:
            kept.append(unit)
    assert units_within(scores, tokens, budget).tolist() == kept


@settings(max_examples=60)
@given(COSTS)
def test_tokens_grow_with_k(units: list[tuple[int, int]]) -> None:
    scores, tokens = columns(units)
    found = list(tokens_at(scores, tokens, range(1, 40)).values())
    assert found == sorted(found)
    assert found[0] == tokens[np.argmax(scores)]
    assert found[-1] == tokens.sum()


def test_errors() -> None:
    with pytest.raises(ValueError, match="budget of 0 tokens"):
        units_within(SCORES, TOKENS, 0)
    with pytest.raises(ValueError, match="got 4 scores for 3 units"):
        units_within(SCORES, TOKENS[:3], 5)
    with pytest.raises(ValueError, match="a unit of -1 tokens"):
        tokens_at(np.zeros(1), np.array([-1]))
    with pytest.raises(ValueError, match="cut-off 0"):
        tokens_at(SCORES, TOKENS, (0,))
    with pytest.raises(ValueError, match="got no evidence sentence"):
        recall_at_budgets(UNITS, SCORES, TOKENS, Spans(EDGES[:0], EDGES[:0]))
