"""What the recall of each pair of settings shows, in words."""

from spscanner_lab.evaluation.result import EvaluationResult
from spscanner_lab.evaluation.rows import Difference
from spscanner_lab.evaluation.tables import points

CHANCE = 0.05  # a difference with a smaller p value is significant


def verdicts(result: EvaluationResult) -> list[str]:
    """A sentence for each pair of settings."""
    sentences = []
    for test in result.differences:
        is_recall = test["metric"] == f"recall@{result.middle}"
        if is_recall and test["average"] == "macro":
            sentences.append(_verdict(test, result.middle))
    return sentences


def _verdict(test: Difference, k: int) -> str:
    better = test["first"]
    worse = test["second"]
    gain = test["difference"]
    low = test["ci_low"]
    high = test["ci_high"]
    if gain < 0:
        better = test["second"]
        worse = test["first"]
        gain = -gain
        low = _negative(test["ci_high"])
        high = _negative(test["ci_low"])
    interval = ""
    if low is not None:
        interval = f" (95 % interval {points(low)} to {points(high)})"
    # With a handful of documents the interval is too narrow, but the sign-flip test is
    # still right.
    if low is None or low <= 0 or test["p_value"] >= CHANCE:
        return (
            f"{better} or {worse}: {test['questions']:,} questions do not tell which"
            f" finds more{interval}."
        )
    share = f"{points(gain)} points of the evidence among the best {k}"
    return f"{better} finds more than {worse}: {share}{interval}."


def _negative(bound: float | None) -> float | None:
    return None if bound is None else -bound
