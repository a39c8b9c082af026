"""Recall at k, by hand and against ir-measures."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_rag.evaluation.metrics import CUTOFFS, recall_at


def test_by_hand() -> None:
    scores = np.array([0.1, 0.9, 0.5, 0.7, 0.3])
    relevant = np.array([True, False, True, False, False])
    assert recall_at(scores, relevant, (1, 2, 3, 4, 5)) == {1: 0.0, 2: 0.0, 3: 0.5, 4: 0.5, 5: 1.0}


def test_cutoffs_of_the_paper() -> None:
    scores = -np.arange(60.0)
    relevant = np.isin(np.arange(60), [0, 4, 9, 49, 59])
    assert recall_at(scores, relevant) == {1: 0.2, 5: 0.4, 10: 0.6, 50: 0.8}
    assert CUTOFFS == (1, 5, 10, 50)


def test_of_equal_scores_the_earlier_unit_comes_first() -> None:
    relevant = np.array([False, True, False])
    assert recall_at(np.zeros(3), relevant, (1, 2, 3)) == {1: 0.0, 2: 1.0, 3: 1.0}


def test_cutoff_beyond_the_units() -> None:
    assert recall_at(np.array([0.0, 1.0]), np.array([True, True]), (50,)) == {50: 1.0}


def test_nothing_relevant() -> None:
    with pytest.raises(ValueError, match="got no relevant unit"):
        recall_at(np.zeros(3), np.zeros(3, bool))
    with pytest.raises(ValueError, match="got no relevant unit"):
        recall_at(np.zeros(0), np.zeros(0, bool))


@pytest.mark.parametrize("scores", [2, 4])
def test_lengths_that_differ(scores: int) -> None:
    with pytest.raises(ValueError, match=f"got {scores} scores for 3 units"):
        recall_at(np.zeros(scores), np.ones(3, bool))


@pytest.mark.parametrize("cutoff", [0, -1])
def test_cutoff_below_one(cutoff: int) -> None:
    with pytest.raises(ValueError, match=f"cut-off {cutoff}; expected at least 1"):
        recall_at(np.zeros(3), np.ones(3, bool), (1, cutoff))


def test_scores_that_are_not_numbers() -> None:
    with pytest.raises(ValueError, match="1 of 3 scores are not numbers"):
        recall_at(np.array([0.0, np.nan, 1.0]), np.ones(3, bool))


def test_infinite_scores() -> None:
    scores = np.array([0.0, -np.inf, np.inf])
    assert recall_at(scores, np.array([False, False, True]), (1,)) == {1: 1.0}
    assert recall_at(scores, np.array([False, True, False]), (2, 3)) == {2: 0.0, 3: 1.0}


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=80))
def test_equals_ir_measures(units: list[tuple[int, bool]]) -> None:
    ir_measures = pytest.importorskip("ir_measures")
    scores = np.array([score for score, _ in units], np.float32)
    relevant = np.array([known for _, known in units])
    if not relevant.any():
        relevant[-1] = True
    # a strict ranking: by score, of equal ones the earlier first
    ranking = sorted(range(len(units)), key=lambda unit: (-scores[unit], unit))
    run = {"q": {f"unit{unit}": float(-rank) for rank, unit in enumerate(ranking)}}
    judged = {"q": {f"unit{unit}": int(known) for unit, known in enumerate(relevant)}}
    measures = [ir_measures.R @ k for k in CUTOFFS]
    expected = ir_measures.calc_aggregate(measures, judged, run)
    found = recall_at(scores, relevant)
    for measure, k in zip(measures, CUTOFFS, strict=True):
        assert found[k] == pytest.approx(expected[measure], abs=1e-9)
