"""Selection against a slow, plain reading of its rules."""

import inspect
import math
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from spscanner_rag.results import ScanResult, Selection
from tests.fakes import result_of


@pytest.mark.parametrize(
    ("top_k", "n_sentences", "expected"),
    [
        (None, 7, 7),
        (3, 7, 3),
        (50, 7, 7),
        (0.07, 100, 10),
        (0.07, 200, 14),
        (0.07, 1000, 70),  # 0.07 * 1000 is 70.00000000000001
        (0.5, 21, 11),
        (0.001, 5, 5),
        (0.001, 12_000, 12),
        (np.int64(4), 7, 4),
        (np.float64(0.25), 100, 25),
        (0.9, 0, 0),
    ],
)
def test_how_many_top_k_allows(
    top_k: float | None, n_sentences: int, expected: int
) -> None:
    scores = np.zeros(n_sentences)
    assert Selection(top_k=top_k).limit(n_sentences, scores) == expected


def test_an_argument_left_out_is_the_same_in_both_ways_to_select() -> None:
    named = inspect.signature(ScanResult.select).parameters
    for each in fields(Selection):
        assert each.name == "top_k_per_text" or named[each.name].default == each.default


@pytest.mark.parametrize("wrong", ["1911", [], ["("], [3], {"a"}])
def test_what_is_no_pattern_is_refused(wrong: Any) -> None:
    with pytest.raises(
        ValueError, match=r"always_keep: got .*; expected a list of regular expressions"
    ):
        Selection(always_keep=wrong)


def test_an_elbow_ends_at_the_steepest_fall() -> None:
    scores = [0.95, 0.9, 0.4, 0.35, 0.1]
    result = result_of(
        [f"w{i}" for i in range(5)], [math.log(s / (1 - s)) for s in scores]
    )
    assert len(result.select("elbow")) == 2
    assert len(result.select("elbow:3-4")) == 4
    assert len(result.select("elbow:1-1")) == 1
    assert len(result.select("elbow:8-9")) == 5
    assert len(result.select("elbow", threshold=0.92)) == 1
    assert len(result.select("elbow", diversity=0.5)) == 2
    assert result_of([], []).select("elbow") == ()
