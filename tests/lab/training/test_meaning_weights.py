"""Fitting the weights of a scanner, an encoder and a cross-reader."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from spscanner_lab.training.meaning_scores import ScoredQuestion
from spscanner_lab.training.meaning_weights import fitted_weights
from spscanner_rag.encoder.answer_evidence import answer_evidence
from spscanner_rag.encoder.meaning_weights import MeaningWeights
from tests.lab.training.knowing import Knowing


def test_weights_are_those_of_two_scores_of_known_worth() -> None:
    rng = np.random.default_rng(0)
    read = []
    for number in range(110):
        relevant = np.zeros(30, bool)
        relevant[rng.integers(30)] = number % 10 > 0
        # each by two sigmas
        scanner = rng.normal(2 * relevant, 1)
        cosines = rng.normal(0.2 * relevant, 0.1)
        read.append(
            ScoredQuestion(
                "a", scanner.astype(np.float32), cosines.astype(np.float32), relevant
            )
        )
    lows = np.full(30, -5, np.float32)
    zeros = np.zeros(30, np.float32)
    foreign = ScoredQuestion("b", lows, zeros, np.zeros(30, bool))
    elsewhere = [foreign] * 55
    weights = fitted_weights(read, MeaningWeights(mean=0.1, deviation=0.2), elsewhere)
    assert weights.scanner > 0
    assert 5 < weights.sentence / weights.scanner < 20
    assert (weights.mean, weights.deviation) == (0.1, 0.2)
    logits = np.concatenate([weights.logits(one.scanner, one.cosines) for one in read])
    share = np.concatenate([one.relevant for one in read]).mean()
    assert (1 / (1 + np.exp(-logits))).mean() == pytest.approx(share, abs=0.01)

    def answerable(some: Sequence[ScoredQuestion], without: bool = False) -> float:
        parts = [one.cosines[~(one.relevant & without)] for one in some]
        return float(
            np.mean([weights.answerable(answer_evidence(part, None)) for part in parts])
        )

    answered = [one for one in read if one.relevant.any()]
    assert answerable(answered) > answerable(answered, without=True) + 0.1
    assert answerable(answered, without=True) > answerable(elsewhere) + 0.1
    with pytest.raises(ValueError, match="evidence"):
        fitted_weights([one for one in read if not one.relevant.any()], weights)


def test_a_cross_reader_that_knows_more_counts_more() -> None:
    rng = np.random.default_rng(0)
    read = []
    for number in range(60):
        relevant = np.arange(20) == number % 20
        scores = rng.normal(0, 1, (2, 20)).astype(np.float32) + relevant
        believed = (number + (number % 5 == 0)) % 20  # it is wrong once in five
        sentences = ["yes" if place == believed else "no" for place in range(20)]
        read.append(
            ScoredQuestion("a", scores[0], scores[1] / 10, relevant, "who?", sentences)
        )
    knowing: Any = Knowing()
    weights = fitted_weights(read, MeaningWeights(), cross=knowing)
    assert 5 * weights.cross > 3 * weights.scanner
    assert fitted_weights(read, MeaningWeights()).cross == 0
    assert weights.answer_scale > 0
