"""A sentence scan learns from scores, and from what stands before a sentence."""

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from spscanner_lab.evidence.questions import Document, Question
from spscanner_lab.training.sentence_scan import (
    LAST_RATE_SHARE,
    SHORTEST_STRETCH,
    ScanExample,
    ScanNumbers,
    _loss,
    _rate_share,
    _stretch,
    scan_examples,
    train_sentence_scan,
)
from spscanner_rag.scan.sentence_features import N_FEATURES
from spscanner_rag.scanner import Scanner

TEXT = "The ship left at noon. Ann signed the lease. It rained. The well was dry."


def ignore(message: str) -> None:
    """Show no message."""


def after_a_signal(count: int) -> Iterator[ScanExample]:
    """Questions whose answer is the sentence after the one with a signal."""
    draw = np.random.default_rng(0)
    for _ in range(count):
        features = draw.normal(0, 0.3, (24, N_FEATURES)).astype(np.float32)
        signal = int(draw.integers(0, 23))
        features[signal, 5] += 4
        relevant = np.zeros(24, bool)
        relevant[signal + 1] = True
        yield ScanExample("made", features, relevant)


@pytest.mark.slow
def test_a_scan_learns_what_stands_before_a_sentence() -> None:
    numbers = ScanNumbers(steps=90, dropout=0.0, rate=5e-3)
    scan = train_sentence_scan(list(after_a_signal(200)), numbers, ignore)
    best = []
    for example in after_a_signal(40):
        best.append(example.relevant[scan.logits(example.features).argmax()])
    assert np.mean(best) > 0.8


def test_the_same_seed_gives_the_same_scan() -> None:
    examples = list(after_a_signal(6))
    numbers = ScanNumbers(steps=4, examples_per_step=2, rate=5e-3)
    first = train_sentence_scan(examples, numbers, ignore)
    second = train_sentence_scan(examples, numbers, ignore)
    other = train_sentence_scan(examples, replace(numbers, seed=1), ignore)
    features = examples[0].features
    assert first.logits(features).tolist() == second.logits(features).tolist()
    assert first.logits(features).tolist() != other.logits(features).tolist()
    assert not first.training


def test_the_learning_rate_rises_and_falls() -> None:
    shares = [_rate_share(step, 100) for step in range(100)]
    top = shares.index(max(shares))
    assert 3 <= top <= 5
    assert sorted(shares[:top]) == shares[:top]
    assert sorted(shares[top:], reverse=True) == shares[top:]
    assert LAST_RATE_SHARE < shares[-1] < 0.1


def test_a_better_ranking_has_a_lower_loss() -> None:
    class Stub:
        """Gives each sentence its first feature as a logit."""

        def __call__(self, features: torch.Tensor) -> torch.Tensor:
            return features[:, :, 0]

    def loss_of(*logits: float) -> float:
        features = np.zeros((len(logits), N_FEATURES), np.float32)
        features[:, 0] = logits
        relevant = np.arange(len(logits)) == 1
        example = ScanExample("made", features, relevant)
        stub: Any = Stub()
        return _loss(stub, example, random.Random(0)).item()

    assert loss_of(-2, 3, -2) < loss_of(-2, 1, -2) < loss_of(3, 1, -2)


def test_a_stretch_is_within_its_text_and_mostly_has_evidence() -> None:
    draw = random.Random(0)
    relevant = np.zeros(200, bool)
    relevant[150] = True
    whole = 0
    answered = 0
    for _ in range(400):
        part = _stretch(relevant, draw)
        assert 0 <= part.start < part.stop <= 200
        assert part.stop - part.start >= SHORTEST_STRETCH
        whole += part == slice(0, 200)
        answered += bool(relevant[part].any())
    assert 0.65 < whole / 400 < 0.85
    assert answered / 400 > 0.9
    short = np.zeros(SHORTEST_STRETCH, bool)
    assert _stretch(short, draw) == slice(0, SHORTEST_STRETCH)


def test_examples_are_the_features_that_a_scanner_reads(bundled: Scanner) -> None:
    question = Question("q", "Who signed the lease?", ((23, 44),))
    other = Question("r", "Who sang?", ())
    document = Document("d", "made", "", TEXT, (question, other))
    assert bundled.meaning is not None
    examples = list(scan_examples(bundled.reading, bundled.meaning, [document], 5))
    assert len(examples) == 2
    relevant = sorted(example.relevant.tolist() for example in examples)
    assert relevant == [[False] * 4, [False, True, False, False]]
    for example in examples:
        assert example.features.shape == (4, N_FEATURES)
    one = list(scan_examples(bundled.reading, bundled.meaning, [document], 1))
    assert len(one) == 1


def test_nothing_to_learn_is_said() -> None:
    example = ScanExample(
        "made", np.zeros((3, N_FEATURES), np.float32), np.zeros(3, bool)
    )
    with pytest.raises(ValueError, match="no question with evidence"):
        train_sentence_scan([example], ScanNumbers(steps=1), ignore)
