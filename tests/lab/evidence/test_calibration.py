"""Calibration error, AUROC and Platt scaling, by hand and against scikit-learn."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from spscanner_lab.evidence.calibration import (
    BINS,
    auroc,
    bins_of,
    filled,
    fit_platt,
    from_filled,
    reliability,
)
from spscanner_rag.results.ranking import sigmoid

sentences = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40)
few_scores = st.lists(
    st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), min_size=1, max_size=20
)


def arrays(
    pairs: list[tuple[float, bool]],
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    return np.array([value for value, _ in pairs]), np.array(
        [mark for _, mark in pairs], bool
    )


def test_edges_of_bins() -> None:
    assert bins_of([0.0, 0.25, 0.5, 1.0], [False] * 4, bins=4)[:, 0].tolist() == [
        1,
        1,
        1,
        1,
    ]
    empty = reliability(bins_of([0.9], [True]))[0]
    assert empty == {
        "low": 0,
        "high": 1 / 15,
        "probability": None,
        "relevant": None,
        "sentences": 0,
    }


@settings(max_examples=50)
@given(sentences)
def test_reliability_against_scikit_learn(pairs: list[tuple[float, bool]]) -> None:
    calibration_curve = pytest.importorskip("sklearn.calibration").calibration_curve
    p, relevant = arrays(pairs)
    assume(relevant.any() and not relevant.all())
    assume(
        not np.isin(p, np.linspace(0, 1, BINS + 1)[1:-1]).any()
    )  # the bin of an edge differs
    shares, means = calibration_curve(relevant, p, n_bins=BINS)
    cells = [cell for cell in reliability(bins_of(p, relevant)) if cell["sentences"]]
    np.testing.assert_allclose([cell["relevant"] for cell in cells], shares)
    np.testing.assert_allclose([cell["probability"] for cell in cells], means)


@given(st.lists(sentences, min_size=1, max_size=5))
def test_bins_of_questions_add_up_and_are_kept(
    questions: list[list[tuple[float, bool]]],
) -> None:
    total = bins_of([], [])
    for pairs in questions:
        total += from_filled(json.loads(json.dumps(filled(bins_of(*arrays(pairs))))))
    np.testing.assert_allclose(
        total, bins_of(*arrays(list(itertools.chain(*questions))))
    )


@given(few_scores, few_scores)
def test_auroc_counts_pairs(positive: list[float], negative: list[float]) -> None:
    pairs = [(p > n) + (p == n) / 2 for p in positive for n in negative]
    assert auroc(positive, negative) == pytest.approx(np.mean(pairs))
    assert auroc(negative, positive) == pytest.approx(1 - np.mean(pairs))


def random_logits(
    seed: int, a: float, b: float, count: int = 400
) -> tuple[NDArray, NDArray[np.bool_]]:
    """Logits and marks for which (a, b) is the solution."""
    random = np.random.default_rng(seed)
    logits = random.normal(-2, 3, count)
    return logits, random.random(count) < sigmoid(a * logits + b)


@settings(max_examples=40)
@given(
    st.integers(0, 1000),
    st.floats(-2, 2),
    st.floats(-3, 3),
    st.floats(0.01, 100),
    st.floats(-50, 50),
)
def test_platt_is_the_minimum(
    seed: int, a: float, b: float, scale: float, shift: float
) -> None:
    logits, relevant = random_logits(seed, a, b)
    overlap = relevant.any() and not relevant.all()
    assume(overlap and logits[~relevant].max() > logits[relevant].min())
    assume(logits[relevant].max() > logits[~relevant].min())
    x = scale * logits + shift
    fitted = fit_platt(x, relevant)
    assert np.mean(sigmoid(fitted[0] * x + fitted[1])) == pytest.approx(
        relevant.mean(), abs=1e-8
    )
    residual = sigmoid(fitted[0] * x + fitted[1]) - relevant
    assert np.mean(residual * logits) == pytest.approx(
        0, abs=1e-7
    )  # the slope of the loss


@pytest.mark.parametrize(
    ("logits", "relevant", "message"),
    [
        ([0.0, 1.0], [True, True], "got 2 relevant of 2 sentences"),
        ([0.0, 1.0], [False, False], "got 0 relevant of 2 sentences"),
        ([0.0, float("inf")], [True, False], "a logit that is not finite"),
        ([0.0, 1.0, 2.0], [False, False, True], "the classes are perfectly separable"),
        ([0.0, 1.0, 1.0], [False, False, True], "the classes are perfectly separable"),
        ([0.0, 1.0, 1.0], [True, True, False], "the classes are perfectly separable"),
        ([1.0, 1.0], [True, False], "the classes are perfectly separable"),
    ],
)
def test_errors_of_platt(
    logits: list[float], relevant: list[bool], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        fit_platt(logits, relevant)
