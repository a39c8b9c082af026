"""Fitting the weights of a sentence scan beside the token reader's."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from spscanner_lab.training.meaning_scores import ScoredQuestion
from spscanner_lab.training.scan_weights import fitted_scan_weights
from spscanner_rag.encoder.meaning_weights import MeaningWeights
from tests.lab.training.knowing import Knowing


def questions(
    worth_of_scanner: float, worth_of_scan: float
) -> Iterator[ScoredQuestion]:
    """Questions whose relevant sentence has higher scores by so many deviations."""
    draw = np.random.default_rng(0)
    for number in range(50):
        relevant = np.arange(40) == number % 40
        scanner = draw.normal(worth_of_scanner * relevant, 1).astype(np.float32)
        estimates = draw.normal(worth_of_scan * relevant, 1).astype(np.float32) - 4
        cosines = np.zeros(40, np.float32)
        believed = (number + (number % 5 == 0)) % 40  # it is wrong once in five
        sentences = ["yes" if place == believed else "no" for place in range(40)]
        yield ScoredQuestion(
            "a", scanner, cosines, relevant, "who?", sentences, estimates
        )


def test_scores_count_as_much_as_they_are_worth() -> None:
    read = list(questions(1.0, 3.0))
    start = MeaningWeights(sentence=7.0, answer_scale=0.5)
    weights = fitted_scan_weights(read, start)
    assert 2 < weights.scan / weights.scan_scanner < 4.5
    assert (weights.sentence, weights.answer_scale) == (7.0, 0.5)
    logits = [weights.logits(one.scanner, one.cosines, one.estimates) for one in read]
    scores = 1 / (1 + np.exp(-np.concatenate(logits)))
    assert scores.mean() == pytest.approx(1 / 40, abs=0.005)


def test_the_weight_of_a_cross_reader_stays() -> None:
    knowing: Any = Knowing()
    start = MeaningWeights(cross=0.3)
    read = list(questions(1.0, 3.0))
    weights = fitted_scan_weights(read, start, knowing)
    assert weights.cross == 0.3
    assert weights.scan > 0
    assert weights.unread > 0
    assert weights != fitted_scan_weights(read, start)


def test_nothing_to_fit_on_is_said() -> None:
    unanswered = [
        one._replace(relevant=np.zeros(40, bool)) for one in questions(1.0, 1.0)
    ]
    with pytest.raises(ValueError, match="no question with evidence"):
        fitted_scan_weights(unanswered, MeaningWeights())
