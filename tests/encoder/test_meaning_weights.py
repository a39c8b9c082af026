"""How much cosines count beside the scanner's logit."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.encoder.meaning_weights import MeaningWeights

WEIGHTS = MeaningWeights(scanner=0.5, sentence=10, near=2, wide=1, bias=-3)


@given(st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=12))
def test_logits_are_the_formula(values: list[float]) -> None:
    cosines = np.array(values, np.float32)
    scanner = np.linspace(-4, 4, len(values), dtype=np.float32)
    expected = []
    for i, cosine in enumerate(values):
        near = np.mean(values[max(0, i - 1) : i + 2]) - cosine
        wide = np.mean(values[max(0, i - 4) : i + 5]) - cosine
        expected.append(-3 + 0.5 * scanner[i] + 10 * cosine + 2 * near + wide)
    np.testing.assert_allclose(WEIGHTS.logits(scanner, cosines), expected, atol=1e-4)


def test_with_a_sentence_scan_the_second_formula_holds() -> None:
    weights = MeaningWeights(scan=2.0, scan_scanner=0.5, scan_bias=-1.0, sentence=9.0)
    scanner = np.float32([4, -2])
    estimates = np.float32([1, 3])
    logits = weights.logits(scanner, np.float32([0.1, 0.9]), estimates)
    assert logits.tolist() == [-1 + 0.5 * 4 + 2 * 1, -1 + 0.5 * -2 + 2 * 3]


def test_a_scanner_that_is_sure_finds_a_sentence_by_itself() -> None:
    weights = MeaningWeights(scan=1.0, sure=0.5, sure_bias=-1.0)
    scanner = np.float32([-20, 20, 4, 2])
    estimates = np.float32([3, -9, 1, 0])
    cosines = np.zeros(4, np.float32)
    logits = weights.logits(scanner, cosines, estimates)
    # where the two logits are equal, either of them is twice as likely as one
    expected = [3, 9, 1 + np.log(2), np.log(2)]
    np.testing.assert_allclose(logits, expected, atol=1e-4)
    without_scan = weights.logits(scanner, cosines)
    assert without_scan.tolist() == scanner.tolist()


def test_what_others_say_is_behind_by_its_weight() -> None:
    weights = MeaningWeights(others=-2.0)
    said_by_others = np.array([False, True])
    logits = weights.behind_asked(np.float32([1, 4]), said_by_others)
    assert logits.tolist() == [1, 2]
    assert weights.weighs_others
    assert MeaningWeights(answer_others=-1.0).weighs_others
    assert not MeaningWeights().weighs_others
