"""What the recall of two settings shows, in words."""

import pytest

from spscanner_lab.evaluation.result import EvaluationResult
from spscanner_lab.evaluation.rows import Difference
from spscanner_lab.evaluation.verdicts import verdicts

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
