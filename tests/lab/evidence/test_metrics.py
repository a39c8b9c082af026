"""Metrics of one ranking, by hand; recall within budgets of tokens and of words."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from spscanner_lab.evidence.metrics import (
    WORD_BUDGETS,
    answer_recall_at,
    answer_recall_at_words,
    best_first,
    character_metrics,
    normalized,
    ranking_metrics,
    recall_at_budgets,
    units_within,
)
from spscanner_rag.results.coverage import Spans


@pytest.mark.parametrize(
    ("scores", "relevant", "cutoffs", "message"),
    [
        (np.zeros(3), np.zeros(3, bool), (1,), "got no relevant unit"),
        (np.zeros(0), np.zeros(0, bool), (1,), "got no relevant unit"),
        (
            np.array([0.0, np.nan, 1.0]),
            np.ones(3, bool),
            (1,),
            "1 of 3 scores are not numbers",
        ),
    ],
)
def test_refusals(
    scores: Any, relevant: Any, cutoffs: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        ranking_metrics(scores, relevant, cutoffs)


def test_best_first() -> None:
    assert best_first(np.array([0.0, 2.0, np.inf, 2.0, -np.inf])).tolist() == [
        2,
        1,
        3,
        0,
        4,
    ]
    assert best_first(np.array([], np.float32)).tolist() == []
    assert best_first(np.array([0, 255, 1], np.uint8)).tolist() == [1, 2, 0]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("grades", "missed", "k", "expected"),
    [
        ([1.0, 0.0], [], 5, 1 / 2),  # satisfied with probability 1/2
        ([0.0, 1.0, 1.0], [], 5, 1 / 4 + 1 / 12),
        ([0.0, 1.0, 1.0], [], 2, 1 / 4),
        ([1.0, 2.0], [], 5, 1 / 4 + 3 / 4 * 3 / 4 / 2),
        ([1.0], [2.0], 5, 1 / 4),
        ([0.0, 5000.0], [], 5, 1 / 2),
    ],
)
def test_expected_reciprocal_rank(
    grades: list[float], missed: list[float], k: int, expected: float
) -> None:
    places = -np.arange(len(grades), dtype=float)
    assert ranking_metrics(places, np.array(grades), (k,), missed)[
        f"err@{k}"
    ] == pytest.approx(expected)


SCORES = np.array([0.0, 3.0, 1.0, 2.0])
TOKENS = np.array([10, 50, 20, 40])
EDGES = np.array([0, 10, 60, 80, 120])
BUDGET_UNITS = Spans(EDGES[:-1], EDGES[1:])


def test_tokens_of_the_best() -> None:
    measured = ranking_metrics(SCORES, TOKENS > 30, (1, 2, 3))
    assert [measured[f"recall@{k}"] for k in (1, 2, 3)] == [0.5, 1.0, 1.0]


def test_recall_at_budgets() -> None:
    # one evidence sentence is in unit 3, another half in unit 1 and half in unit 2
    sentences = Spans(np.array([85, 55]), np.array([90, 65]))
    found = recall_at_budgets(BUDGET_UNITS, SCORES, TOKENS, sentences, (9, 49, 50, 90))
    assert found == {9: 0.0, 49: 0.5, 50: 0.5, 90: 1.0}


COSTS = st.lists(
    st.tuples(st.integers(-3, 3), st.integers(0, 9)), min_size=1, max_size=30
)


def columns(
    units: list[tuple[int, int]],
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    scores, tokens = np.array(units).T
    return scores.astype(float), tokens


@settings(max_examples=60)
@given(COSTS, st.integers(1, 60))
def test_equals_a_plain_loop(units: list[tuple[int, int]], budget: int) -> None:
    scores, tokens = columns(units)
    kept: list[int] = []
    for unit in sorted(range(len(units)), key=lambda unit: -scores[unit]):
        if sum(tokens[kept]) + tokens[unit] <= budget:
            kept.append(unit)
    assert units_within(scores, tokens, budget).tolist() == kept


WORDS = st.sampled_from(["The", "king,", "king", "of", "Norway.", "a", "Oslo"])


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.lists(WORDS, max_size=6), max_size=6),
    st.lists(WORDS, min_size=1, max_size=2),
)
def test_the_first_words_of_the_joined_units(
    units: list[list[str]], answer: list[str]
) -> None:
    budgets = (1, 3, 8, 30)
    words = [word for unit in units for word in unit]
    wanted = normalized(" ".join(answer)).split()
    found = answer_recall_at_words(
        [" ".join(unit) for unit in units], [" ".join(answer)], budgets
    )
    if not wanted:
        assert found == {}
        return
    for budget in budgets:
        held = normalized(" ".join(words[:budget])).split()
        expected = any(held[i : i + len(wanted)] == wanted for i in range(len(held)))
        assert found[budget] == float(expected)


def test_whole_words_any_answer_and_no_more_than_needed() -> None:
    def units() -> object:
        yield "He was king."
        yield "w " * max(WORD_BUDGETS)
        pytest.fail("read more than the largest budget needs")

    assert answer_recall_at_words(units(), ["kin", "duke"])[50] == 0.0  # type: ignore[arg-type]
    assert answer_recall_at_words(
        ["He was king."], ["duke", "The King"]
    ) == dict.fromkeys(WORD_BUDGETS, 1.0)
    assert answer_recall_at_words(["He"], []) == {}


@pytest.mark.parametrize(
    ("scores", "evidence", "expected"),
    [
        # units: 0-10, 10-40, 40-60, 60-100; as many as overlap the evidence, or what
        # fits into 35 characters
        (
            [1, 4, 3, 2],
            [(12, 22)],
            {"": (1.0, 10 / 30, 10 / 30), "@35": (1.0, 10 / 30, 10 / 30)},
        ),
        (
            [4, 1, 3, 2],
            [(5, 15)],
            {"": (0.5, 5 / 30, 5 / 35), "@35": (0.5, 5 / 30, 5 / 35)},
        ),
        ([4, 1, 3, 2], [(80, 90)], {"": (0.0, 0.0, 0.0), "@35": (0.0, 0.0, 0.0)}),
        (
            [1, 2, 4, 3],
            [(40, 60), (90, 100)],
            {"": (1.0, 0.5, 0.5), "@35": (20 / 30, 20 / 30, 20 / 40)},
        ),
    ],
)
def test_characters_of_exact_spans(
    scores: list[float],
    evidence: list[tuple[int, int]],
    expected: dict[str, tuple[float, float, float]],
) -> None:
    units = Spans(np.array([0, 10, 40, 60]), np.array([10, 40, 60, 100]))
    found = character_metrics(
        units, np.array(scores, np.float32), Spans(*np.array(evidence).T), (35,)
    )
    for name, values in expected.items():
        for metric, value in zip(
            ("character_recall", "character_precision", "iou"), values, strict=True
        ):
            assert found[f"{metric}{name}"] == pytest.approx(value), (metric, name)


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (["king"], {1: 0.0, 2: 1.0, 3: 1.0}),
        (["duke", "The King!"], {1: 0.0, 2: 1.0, 3: 1.0}),
        (["He was king"], {1: 0.0, 2: 0.0, 3: 0.0}),  # parts of two units
        (["kin"], {1: 0.0, 2: 0.0, 3: 0.0}),
        ([" "], {}),
    ],
)
def test_an_answer_within_one_of_the_best(
    answers: list[str], expected: dict[int, float]
) -> None:
    assert (
        answer_recall_at(["He was", "king of", "the kings"], answers, (1, 2, 3))
        == expected
    )
