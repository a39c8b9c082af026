"""What scorers may return, and what is refused."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from spscanner_rag.scorers import (
    Request,
    ScanCancelled,
    Scorer,
    UnitScores,
    check_scorer,
    never,
    score_batch,
)
from spscanner_rag.text.blocks import Block
from spscanner_rag.text.units import Unit
from tests.fakes import EQUAL, logits_of

UNITS = [Unit(0, 1, "a "), Unit(2, 3, "b")]
REQUESTS: list[Request] = [("q", "a b", UNITS), ("q", " ", []), ("q", "a", UNITS[:1])]


class Returns(Scorer):
    """Returns the same answer for every text."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def score_units(self, query: str, text: str, units: Sequence[Unit]) -> Any:
        assert units
        return self.answer


class ReturnsAll(Returns):
    """Returns the same answers for every batch of texts."""

    def score_units_many(
        self,
        requests: Sequence[Request],
        *,
        collection: Any = None,
        cancelled: Any = never,
    ) -> Any:
        assert all(units for _, _, units in requests)
        return [UnitScores(logits) for logits in self.answer]


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
    one = score_batch(Returns(answer), REQUESTS[:2], never)
    many = score_batch(ReturnsAll([answer]), REQUESTS[:2], never)
    for got in (logits_of(one), logits_of(many)):
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
            score_batch(scorer, REQUESTS[:1], never)


@pytest.mark.parametrize("answers", [[], [[1, 2]], [[1, 2], [], [1]]])
def test_an_answer_for_each_text(answers: list[list[int]]) -> None:
    with pytest.raises(
        ValueError,
        match=rf"score_units_many returned {len(answers)} results for 2 texts",
    ):
        score_batch(ReturnsAll(answers), REQUESTS, never)


def test_texts_without_units_are_not_scored() -> None:
    assert [
        scores.logits.tolist()
        for scores in score_batch(ReturnsAll(None), REQUESTS[1:2], never)
    ] == [[]]
    assert score_batch(Returns([1, 2]), [], never) == []


def test_what_is_no_unit_scores_is_refused() -> None:
    class Arrays(ReturnsAll):
        def score_units_many(self, requests: Any, **options: Any) -> Any:
            return [np.zeros(len(units)) for _, _, units in requests]

    with pytest.raises(TypeError, match=r"ndarray for a text; expected UnitScores\("):
        score_batch(Arrays(None), REQUESTS, never)


def test_cancelled_between_texts() -> None:
    class Counts(Returns):
        scored = 0

        def score_units(self, query: str, text: str, units: Sequence[Unit]) -> Any:
            self.scored += 1
            return super().score_units(query, text, units)

    scorer = Counts([1, 2])
    with pytest.raises(ScanCancelled, match="between two texts"):
        score_batch(scorer, [REQUESTS[0]] * 2, iter([False, True]).__next__)
    assert scorer.scored == 1


def test_all_but_one_method_has_a_default() -> None:
    scorer = Returns([1.0])
    assert scorer.name == "returns"
    assert [unit[:2] for unit in scorer.units_of("One. Two.")] == [(0, 4), (5, 9)]
    assert scorer.unit_name is None
    assert scorer.segmenter is None
    assert scorer.count_tokens is None
    assert scorer.meaning is None
    assert scorer.calls_at_once is None
    assert scorer.scorers == ()
    assert not scorer.uses_collection
    assert not scorer.says_answers
    assert not scorer.keeps_texts
    scorer.name = "mine"
    assert scorer.name == "mine"


def test_whether_a_text_answers_is_said_for_texts_without_units_too() -> None:
    class Sure(Returns):
        says_answers = True

        def score_units_many(self, requests: Any, **options: Any) -> Any:
            return [UnitScores(np.zeros(len(units)), 0.5) for _, _, units in requests]

    scores = score_batch(Sure(None), REQUESTS, never)
    assert [of_text.answerable for of_text in scores] == [0.5, 0.0, 0.5]
    scores = score_batch(Returns([1, 2]), REQUESTS[:2], never)
    assert [of_text.answerable for of_text in scores] == [None, None]


def test_blocks_are_units_of_the_default() -> None:
    text = "Height\n7 m\n"
    rows = [Block(0, 6, "row"), Block(7, 10, "row")]
    units = Returns(None).units_of(text, rows)
    assert [text[unit.start : unit.end] for unit in units] == ["Height", "7 m"]


def test_a_look_alike_is_told_to_subclass() -> None:
    class LooksAlike:
        def score_units(self, query: str, text: str, units: Sequence[Unit]) -> Any:
            return np.zeros(len(units))

    expected = (
        r"scorer is LooksAlike; .*subclass spscanner_rag\.scorers\.Scorer and define"
    )
    with pytest.raises(TypeError, match=expected):
        check_scorer(LooksAlike())
    with pytest.raises(TypeError, match=r"pass an instance, Returns\(\)"):
        check_scorer(Returns)
    assert check_scorer(EQUAL) is EQUAL
