"""A sentence scan learns from scores, and from what stands before a sentence."""

from collections.abc import Iterator

import numpy as np
import pytest

from spscanner_lab.evidence.questions import Document, Question
from spscanner_lab.training.sentence_scan import (
    ScanExample,
    ScanNumbers,
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
