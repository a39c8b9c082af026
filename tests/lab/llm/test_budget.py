"""Budgets: pace, and limits that need prices."""

import time

import pytest

from spscanner_lab.llm.budget import Budget


def test_a_steady_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    budget = Budget(per_minute=30)
    assert [budget.turn(1) for _ in range(3)] == [0, 2, 4]
    now[0] += 10
    assert budget.turn(1) == 0


def test_a_limit_of_cost_needs_prices() -> None:
    with pytest.raises(ValueError, match="without prices"):
        Budget(max_cost=1.0)
