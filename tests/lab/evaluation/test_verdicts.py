"""What the recall of two settings shows, in words."""

import pytest

from spscanner_lab.evaluation.result import EvaluationResult
from spscanner_lab.evaluation.rows import Difference
from spscanner_lab.evaluation.verdicts import deciding_tests, verdicts
from spscanner_lab.views.evaluation_page import first_sentence

MORE = "{}: +20.0 points of the evidence among the best 10 (95 % interval"


UNTOLD = "one or two: 1,234 questions do not tell which finds more"


@pytest.mark.parametrize(
    ("points", "low", "high", "p", "expected"),
    [
        (0.2, 0.1, 0.3, 0.01, MORE.format("one finds more than two")),
        (-0.2, -0.3, -0.1, 0.04, MORE.format("two finds more than one")),
        (0.2, -0.1, 0.5, 0.2, f"{UNTOLD} (95 % interval -10.0 to +50.0)."),
        (
            0.2,
            0.1,
            0.3,
            0.5,
            f"{UNTOLD} (95 % interval +10.0 to +30.0).",
        ),  # as of two documents
        (0.2, None, None, 1.0, f"{UNTOLD}."),
    ],
)
def test_a_terminal_says_what_recall_says(
    points: float, low: float | None, high: float | None, p: float, expected: str
) -> None:
    test = Difference(
        first="one", second="two", metric="recall@10", average="macro",
        difference=points, ci_low=low, ci_high=high, p_value=p, questions=1234,
    )  # fmt: skip
    (said,) = verdicts(EvaluationResult([], [test], []))
    assert said.startswith(expected)


def a_test(metric: str, points: float, p: float) -> Difference:
    return Difference(
        first="one", second="two", metric=metric, average="macro",
        difference=points, ci_low=points - 0.05, ci_high=points + 0.05,
        p_value=p, questions=20,
    )  # fmt: skip


def test_the_page_and_the_terminal_decide_by_the_same_test() -> None:
    tests = [a_test("document_mrr", 0.01, 0.7), a_test("recall@10", 0.35, 0.01)]
    result = EvaluationResult([], tests, [])
    (said,) = verdicts(result)
    assert said.startswith("one finds more than two: +35.0 points")
    sentence = first_sentence(deciding_tests(result), {})
    assert sentence == "one is better than two, by more than chance."


def test_a_small_p_with_an_interval_around_zero_is_not_clear() -> None:
    test = a_test("recall@10", 0.01, 0.001)
    result = EvaluationResult([], [test], [])
    assert "do not tell" in verdicts(result)[0]
    assert first_sentence(deciding_tests(result), {}).startswith("No clear winner")


def test_sentences_and_chunks_are_decided_within_equal_tokens() -> None:
    test = a_test("recall_at_tokens@1000", -0.2, 0.001)
    (said,) = verdicts(EvaluationResult([], [test], []))
    assert said.startswith(
        "two finds more than one: +20.0 points of the evidence within 1,000 tokens"
    )
