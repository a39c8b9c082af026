"""Scores to cut at, and the presets that cut."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.text.keep_scale import BALANCED, KeepScale, is_keep

SCALE = KeepScale(
    logit=1.5, best=-1.0, answerable=0.8, bias=0.3, strict=0.8, generous=0.2
)
LOGITS = st.lists(st.floats(-300, 300, width=32), min_size=1, max_size=30)
PROBABILITY = st.none() | st.floats(0, 1)


@given(LOGITS, PROBABILITY)
def test_scores_are_in_the_order_of_the_logits(
    logits: list[float], answerable: float | None
) -> None:
    values = np.array(logits, np.float32)
    scores = SCALE.scores(values, answerable)
    assert ((scores >= 0) & (scores <= 1)).all()
    order = np.argsort(values, kind="stable")
    assert (np.diff(scores[order]) >= 0).all()


def test_the_formula() -> None:
    scores = SCALE.scores(np.float32([2.0, -1.0]), answerable=0.75)
    shared = 0.3 - 1.0 * 2.0 + 0.8 * np.log(3)
    expected = 1 / (1 + np.exp(-(shared + 1.5 * np.array([2.0, -1.0]))))
    assert scores == pytest.approx(expected)


def test_the_same_sentence_is_worth_less_if_the_text_hardly_answers() -> None:
    logits = np.float32([1.0, 0.0])
    surely = SCALE.scores(logits, 0.9)
    hardly = SCALE.scores(logits, 0.05)
    assert (surely > hardly).all()
    assert len(SCALE.scores(np.zeros(0, np.float32), 0.5)) == 0


def test_presets_are_in_order() -> None:
    leasts = [SCALE.least(keep) for keep in ("strict", "balanced", "generous")]
    assert leasts == [0.8, BALANCED, 0.2]
    assert all(is_keep(keep) for keep in ("strict", "balanced", "generous", None))
    assert not any(is_keep(value) for value in ("loose", "", 0.5, True))


@pytest.mark.parametrize(
    ("weights", "named"),
    [
        ({"logit": "1"}, "keep.logit is '1'"),
        ({"bias": float("nan")}, "keep.bias is nan"),
        ({"logit": 0.0}, "keep.logit is 0.0"),
        ({"logit": 1.0, "best": -1.0}, "best -1.0"),
        ({"strict": 0.4}, "keep.strict is 0.4"),
        ({"generous": 0.6}, "generous 0.6"),
        ({"answerable": 1e9}, "keep.answerable"),
    ],
)
def test_weights_that_cannot_be(weights: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        KeepScale(**weights)
