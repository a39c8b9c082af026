import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from spscanner_rag.baselines.aggregation import (
    AGGREGATIONS,
    PassageAggregation,
    avg_p,
    first_p,
    long_p,
    max_p,
    rank_by_passages,
    sum_p,
)
from spscanner_rag.scorers import ScanCancelled
from spscanner_rag.text.units import Unit

DOCUMENTS = ["Eel. Otter otter. Heron.", "Otter. Eel.", "Heron. Eel.", "Eel! Otter. Otter. Otter.", " \n"]


class Counting:
    """The logit of a unit is how often its text holds the query, less 1."""

    def score_units(self, query: str, text: str, units: Sequence[Unit]) -> NDArray[np.float32]:
        counts = [text[unit.start : unit.end].lower().count(query) for unit in units]
        return np.array(counts, np.float32) - 1


def test_by_hand() -> None:
    scores = [0.5, 0.25, 0.75]
    assert first_p(scores) == 0.5
    assert max_p(scores) == 0.75
    assert avg_p(scores) == 0.5
    assert sum_p(scores) == 1.5
    assert long_p([0.25]) == 0.25


@settings(max_examples=30)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_against_the_standard_library(scores: list[float]) -> None:
    assert max_p(scores) == max(scores)
    assert sum_p(scores) == pytest.approx(math.fsum(scores))
    assert avg_p(scores) == pytest.approx(math.fsum(scores) / len(scores))
    shuffled = sorted(scores)
    assert max_p(shuffled) == max_p(scores)
    assert sum_p(shuffled) == pytest.approx(sum_p(scores))
    assert first_p(shuffled) == min(scores)
    assert first_p(scores) <= max_p(scores)
    assert min(scores) - 1e-12 <= avg_p(scores) <= max_p(scores) + 1e-12


def sigmoid(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))


@pytest.mark.parametrize(
    ("aggregation", "order", "best"),
    [
        # counts of "otter" by sentence: 0 2 0 | 1 0 | 0 0 | 0 1 1 1 | none
        ("first_p", [1, 0, 2, 3, 4], sigmoid(0)),
        ("max_p", [0, 1, 3, 2, 4], sigmoid(1)),
        ("avg_p", [3, 0, 1, 2, 4], (sigmoid(-1) + 3 * sigmoid(0)) / 4),
        ("sum_p", [3, 0, 1, 2, 4], sigmoid(-1) + 3 * sigmoid(0)),
        ("long_p", [3, 0, 1, 2, 4], sigmoid(2)),
    ],
)
def test_ranking(aggregation: PassageAggregation, order: list[int], best: float) -> None:
    ranked = rank_by_passages(Counting(), "otter", DOCUMENTS, aggregation)
    assert [document.number for document in ranked] == order
    assert ranked[0].score == pytest.approx(best, abs=1e-6)
    assert ranked[-1].score == 0.0


def test_many_documents_and_ties_keep_their_order() -> None:
    ranked = rank_by_passages(Counting(), "otter", ["Otter.", "Eel."] * 70)
    assert [document.number for document in ranked] == [*range(0, 140, 2), *range(1, 140, 2)]


def test_scores_stay_apart_however_far_from_0() -> None:
    class Far:
        def score_units(self, query: str, text: str, units: Sequence[Unit]) -> NDArray[np.float32]:
            return np.array([float(text)], np.float32)

    ranked = rank_by_passages(Far(), "q", ["30", "-600", "31", "-500"], "long_p")
    assert [document.number for document in ranked] == [2, 0, 3, 1]


def test_cancelled() -> None:
    with pytest.raises(ScanCancelled):
        rank_by_passages(Counting(), "otter", DOCUMENTS, cancelled=lambda: True)


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="'min_p'; expected one of first_p, max_p, avg_p, sum_p, long_p"):
        rank_by_passages(Counting(), "otter", DOCUMENTS, "min_p")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="query: got"):
        rank_by_passages(Counting(), " ", DOCUMENTS)
    with pytest.raises(ValueError, match="LongP got 2 scores; expected one"):
        long_p([1, 2])
    assert rank_by_passages(Counting(), "otter", []) == []


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("scores", [[], [[1.0]], [float("nan")], [float("inf")]])
def test_bad_scores(aggregation: PassageAggregation, scores: list[float]) -> None:
    with pytest.raises(ValueError, match="expected one finite number for each passage"):
        AGGREGATIONS[aggregation](scores)
