"""A token budget, against plain rules."""

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.results import ScanResult
from spscanner_rag.results.token_budget import TokenBudget
from tests.fakes import words
from tests.results.plain_selection import (
    CONTEXT,
    THRESHOLD,
    TOP_K,
    PlainSelection,
    numbers,
    results,
)

# Counters for which the parts of a text add up to the whole.
ADDITIVE: list[Callable[[str], int]] = [
    words,
    len,
    lambda text: words(text) + 3 * text.count("\n"),
    lambda text: 2 * len(text) + 5 * text.count(" "),
]


@given(
    results(), st.sampled_from(ADDITIVE), TOP_K, THRESHOLD, CONTEXT, st.integers(1, 250)
)
def test_budget_is_filled_as_the_plain_rules_say(
    result: ScanResult,
    counter: Callable[[str], int],
    top_k: float | None,
    threshold: float | None,
    context: int,
    max_tokens: int,
) -> None:
    plain = PlainSelection(result)
    expected = plain.within(plain.picks(top_k, threshold), context, max_tokens, counter)
    passages = result.select(top_k, threshold, max_tokens, counter, context)
    assert numbers(result, passages) == sorted(expected)


# Counters for which the parts of a text do not add up to the whole.
COUNTERS: list[Callable[[str], int]] = [
    words,
    len,
    lambda text: len(text) ** 2 // 50,
    lambda text: 2 + len(text) // 4,
    lambda text: max(0, 60 - len(text)),
    lambda text: sum(map(ord, text)) % 17,
    lambda text: 3 * text.count("\n"),
]


def measured(
    result: ScanResult, counter: Callable[[str], int], arguments: dict[str, Any]
) -> list[int]:
    """Tokens of every form that a caller can get.

    Passages joined, passages one by one, and the context.
    """
    counts = []
    for order in ("document", "score"):
        for merge in (False, True):
            passages = result.select(**arguments, order=order, merge=merge)  # type: ignore[arg-type]
            counts.append(
                counter("\n".join(passage.text for passage in passages))
                if passages
                else 0
            )
            counts.append(sum(counter(passage.text) for passage in passages))
    text = result.context(**arguments)
    return [*counts, counter(text) if text else 0]


@given(results(), st.sampled_from(COUNTERS), TOP_K, CONTEXT, st.integers(1, 120))
def test_no_counter_gets_more_than_the_budget(
    result: ScanResult,
    counter: Callable[[str], int],
    top_k: float | None,
    context: int,
    max_tokens: int,
) -> None:
    arguments = {
        "top_k": top_k,
        "context": context,
        "max_tokens": max_tokens,
        "count_tokens": counter,
    }
    assert max(measured(result, counter, arguments)) <= max_tokens


def test_neighbours_in_another_block_do_not_come_into_the_budget() -> None:
    text = "One. Two. Three. Four."
    starts = np.array([0, 5, 10, 17])
    ends = np.array([4, 9, 16, 22])
    budget = TokenBudget(
        lambda start, end: text[start:end],
        starts,
        ends,
        np.array([0, 0, 1, 1]),
        max_tokens=100,
        count=words,
    )
    budget.fill([1], context=3)
    assert sorted(budget.costs) == [0, 1]
