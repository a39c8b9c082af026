"""Scores of logits."""

import math

import numpy as np
import pytest

from spscanner_rag.results.ranking import sigmoid


def test_sigmoid_has_no_overflow_and_keeps_its_precision() -> None:
    logits = np.array(
        [-3e38, -700, -40, -1e-8, 0, 1e-8, 40, 700, 3e38], dtype=np.float32
    )
    with np.errstate(over="raise", invalid="raise"):
        scores = sigmoid(logits)
    assert scores[0] == 0
    assert scores[-1] == 1
    assert scores[4] == 0.5
    assert scores[2] == pytest.approx(math.exp(-40), rel=1e-12)
    assert (np.diff(scores) >= 0).all()
    assert scores.dtype == np.float64
