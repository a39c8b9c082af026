"""Metrics of one ranking, by hand and against ir-measures."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from spscanner_rag.lab.evidence.metrics import CUTOFFS, Measure, best_first, ranking_metrics, recall_at


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


def test_relevance_that_is_no_number_or_below_0() -> None:
    with pytest.raises(ValueError, match=r"relevance of type <U1 and shape \(3,\); expected a bool"):
        recall_at(np.zeros(3), np.array(["0", "2", "1"]))  # type: ignore[arg-type]
    for bad in ([0, 2, -1], [0.0, np.nan, 1.0]):
        with pytest.raises(ValueError, match="got a grade below 0, or one that is not finite"):
            ranking_metrics(np.zeros(3), np.array(bad))


def test_shapes_that_are_no_ranking() -> None:
    with pytest.raises(ValueError, match="expected one each"):
        recall_at(np.zeros((2, 2)), np.ones((2, 2), bool))
    with pytest.raises(ValueError, match=r"shape \(3, 1\); expected a bool or a grade"):
        recall_at(np.zeros(3), np.ones((3, 1), bool))


def test_best_first() -> None:
    assert best_first(np.array([0.0, 2.0, np.inf, 2.0, -np.inf]), 5).tolist() == [2, 1, 3, 0, 4]
    assert best_first(np.array([], np.float32), 0).tolist() == []
    assert best_first(np.array([0, 255, 1], np.uint8), 3).tolist() == [1, 2, 0]  # type: ignore[arg-type]


def test_all_metrics_by_hand() -> None:
    scores = np.array([0.1, 0.9, 0.5, 0.7, 0.3])  # ranks 5, 1, 3, 2, 4
    relevant = np.array([True, False, True, False, False])
    found = ranking_metrics(scores, relevant, (1, 3, 10))
    ideal = 1 + 1 / np.log2(3)
    assert found == pytest.approx(
        {
            Measure("recall", 1): 0.0,
            Measure("recall", 3): 0.5,
            Measure("recall", 10): 1.0,
            Measure("precision", 1): 0.0,
            Measure("precision", 3): 1 / 3,
            Measure("precision", 10): 0.2,
            Measure("ndcg", 1): 0.0,
            Measure("ndcg", 3): 0.5 / ideal,
            Measure("ndcg", 10): (0.5 + 1 / np.log2(6)) / ideal,
            Measure("success", 1): 0.0,
            Measure("success", 3): 1.0,
            Measure("success", 10): 1.0,
            Measure("mrr", 1): 0.0,
            Measure("mrr", 3): 1 / 3,
            Measure("mrr", 10): 1 / 3,
            Measure("mrr", None): 1 / 3,
            Measure("map", None): (1 / 3 + 2 / 5) / 2,
        }
    )


def test_errors_of_all_metrics() -> None:
    with pytest.raises(ValueError, match="got no relevant unit"):
        ranking_metrics(np.zeros(2), np.zeros(2, bool))
    with pytest.raises(ValueError, match="cut-off 0"):
        ranking_metrics(np.zeros(2), np.ones(2, bool), (0,))


UNITS = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=80)


def scored(units: list[tuple[int, bool]]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    scores = np.array([score for score, _ in units], np.float32)
    relevant = np.array([known for _, known in units])
    if not relevant.any():
        relevant[-1] = True
    return scores, relevant


@settings(max_examples=50)
@given(UNITS)
def test_equals_ir_measures(units: list[tuple[int, bool]]) -> None:
    ir_measures = pytest.importorskip("ir_measures")
    scores, relevant = scored(units)
    # trec_eval puts the greater name first among equal scores: so a strict ranking, of equal ones the earlier
    # first, with the rank as score
    ranking = sorted(range(len(units)), key=lambda unit: (-scores[unit], unit))
    run = {"q": {f"unit{unit}": float(-rank) for rank, unit in enumerate(ranking)}}
    judged = {"q": {f"unit{unit}": int(known) for unit, known in enumerate(relevant)}}
    names = {"recall": "R", "precision": "P", "ndcg": "nDCG", "success": "Success", "mrr": "RR"}
    measures = {
        Measure(metric, k): getattr(ir_measures, name) @ k for metric, name in names.items() for k in CUTOFFS
    }
    measures |= {Measure("mrr", None): ir_measures.RR, Measure("map", None): ir_measures.AP}
    expected = ir_measures.calc_aggregate(measures.values(), judged, run)
    found = ranking_metrics(scores, relevant)
    assert found.keys() == measures.keys()
    for ours, theirs in measures.items():
        assert found[ours] == pytest.approx(expected[theirs], abs=1e-9), ours
    assert recall_at(scores, relevant) == {k: found["recall", k] for k in CUTOFFS}


@settings(max_examples=50)
@given(UNITS)
def test_bounds_and_order(units: list[tuple[int, bool]]) -> None:
    found = ranking_metrics(*scored(units))
    assert all(0 <= value <= 1 for value in found.values())
    for metric in ("recall", "success", "mrr"):
        assert sorted(found[metric, k] for k in CUTOFFS) == [found[metric, k] for k in CUTOFFS]
    perfect = ranking_metrics(scored(units)[1].astype(float), scored(units)[1])
    assert all(perfect["ndcg", k] == pytest.approx(1) for k in CUTOFFS)
