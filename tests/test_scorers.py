"""What scorers may return, and what is refused."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from spscanner_rag.scorers import Request, ScanCancelled, never, score_batch
from spscanner_rag.text.units import Unit

UNITS = [Unit(0, 1, "a "), Unit(2, 3, "b")]
REQUESTS: list[Request] = [("q", "a b", UNITS), ("q", " ", []), ("q", "a", UNITS[:1])]


class Returns:
    """Returns the same answer for every text."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def score_units(self, query: str, text: str, units: Sequence[Unit]) -> Any:
        assert units
        return self.answer


class ReturnsAll(Returns):
    def score_units_many(self, requests: Sequence[Request], *, cancelled: Any) -> Any:
        assert all(units for _, _, units in requests)
        return self.answer


@pytest.mark.parametrize(
    "answer",
    [
        [1, 2],
        (1.0, 2.0),
        np.array([1, 2]),
        np.array([1.0, 2.0]),
        torch.tensor([1.0, 2.0]),
    ],
)
def test_any_numbers_will_do(answer: Any) -> None:
    one = list(score_batch(Returns(answer), REQUESTS[:2], never))
    many = list(score_batch(ReturnsAll([answer]), REQUESTS[:2], never))
    for got in (one, many):
        assert [logits.tolist() for logits in got] == [[1, 2], []]
        assert {logits.dtype for logits in got} == {np.dtype(np.float32)}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([1.0], r"Returns\w*\.score_units returned shape \(1,\)"),
        ([[1.0, 2.0]], r"shape \(1, 2\)"),
        (None, r"shape \(\)"),
        (3.0, r"shape \(\)"),
        (
            [1.0, float("nan")],
            (
                "with 1 values that are not finite, for 2 units; expected one finite"
                " number"
            ),
        ),
        ([1e300, -1e300], "with 2 values that are not finite"),
        ([float("inf"), 0], "with 1 values that are not finite"),
    ],
)
def test_other_answers_are_refused(answer: Any, message: str) -> None:
    for scorer in (Returns(answer), ReturnsAll([answer])):
        with pytest.raises(ValueError, match=message):
            list(score_batch(scorer, REQUESTS[:1], never))


@pytest.mark.parametrize("answers", [[], [[1, 2]], [[1, 2], [], [1]]])
def test_an_answer_for_each_text(answers: list[list[int]]) -> None:
    with pytest.raises(
        ValueError,
        match=rf"score_units_many returned {len(answers)} arrays for 2 texts",
    ):
        list(score_batch(ReturnsAll(answers), REQUESTS, never))


def test_texts_without_units_are_not_scored() -> None:
    assert [
        logits.tolist()
        for logits in score_batch(ReturnsAll(None), REQUESTS[1:2], never)
    ] == [[]]
    assert list(score_batch(Returns([1, 2]), [], never)) == []


def test_cancelled_between_texts() -> None:
    scored = score_batch(
        Returns([1, 2]), [REQUESTS[0]] * 2, iter([False, True]).__next__
    )
    assert next(scored).tolist() == [1, 2]
    with pytest.raises(ScanCancelled, match="between two texts"):
        next(scored)
