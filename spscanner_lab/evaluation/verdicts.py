"""What the tests of each pair of settings show, in words."""

from spscanner_lab.evaluation.result import EvaluationResult
from spscanner_lab.evaluation.rows import Difference
from spscanner_lab.evaluation.tables import points

CHANCE = 0.05  # a difference with a smaller p value is significant


def is_clear(test: Difference) -> bool:
    """Whether a difference is more than chance.

    With a handful of documents the interval is too narrow, but the sign-flip test is
    still right. So both must say it.
    """
    low = test["ci_low"]
    high = test["ci_high"]
    if low is None or high is None or test["p_value"] >= CHANCE:
        return False
    return low > 0 or high < 0


def deciding_tests(result: EvaluationResult) -> list[Difference]:
    """The test of each pair that decides which setting is better.

    It is that of the evidence among the best ten, whatever else was tested. Sentences
    and chunks have no such test, and the first of their tests decides. The terminal and
    the page both say what this test shows.
    """
    recall = f"recall@{result.middle}"
    test_by_pair: dict[tuple[str, str], Difference] = {}
    for test in result.differences:
        pair = (test["first"], test["second"])
        if test["metric"] == recall:
            test_by_pair[pair] = test
        else:
            test_by_pair.setdefault(pair, test)
    return list(test_by_pair.values())


def verdicts(result: EvaluationResult) -> list[str]:
    """A sentence for each pair of settings."""
    sentences = []
    for test in deciding_tests(result):
        sentences.append(_verdict(test))
    return sentences


def _verdict(test: Difference) -> str:
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
    if not is_clear(test):
        return (
            f"{better} or {worse}: {test['questions']:,} questions do not tell which"
            f" finds more{interval}."
        )
    gained = f"{points(gain)} {_measured(test['metric'])}"
    return f"{better} finds more than {worse}: {gained}{interval}."


def _measured(metric: str) -> str:
    """What points of a metric are points of."""
    name, _, number = metric.partition("@")
    if name == "recall":
        return f"points of the evidence among the best {number}"
    if name == "recall_at_tokens":
        return f"points of the evidence within {int(number):,} tokens"
    return f"points of {metric}"


def _negative(bound: float | None) -> float | None:
    return None if bound is None else -bound
