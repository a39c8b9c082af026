"""A scan over sentences reads what came before, and its sizes are checked."""

import numpy as np
import pytest
import torch

from spscanner_rag.mamba2.sentence_scan import SentenceScan
from spscanner_rag.mamba2.sentence_scan_shape import SentenceScanShape


@pytest.fixture
def scan() -> SentenceScan:
    torch.manual_seed(0)
    scan = SentenceScan(SentenceScanShape(features=5, width=16, head_width=8))
    torch.nn.init.normal_(scan.head.weight)
    return scan.eval()


def test_a_logit_depends_on_the_sentences_before_it_alone(scan: SentenceScan) -> None:
    features = np.random.default_rng(0).normal(size=(300, 5)).astype(np.float32)
    logits = scan.logits(features)
    assert logits.shape == (300,)
    assert scan.logits(features[:200]) == pytest.approx(logits[:200], abs=1e-4)
    changed = features.copy()
    changed[100] += 3
    differs = np.abs(scan.logits(changed) - logits) > 1e-6
    assert not differs[:100].any()
    assert differs[101:110].any()


def test_a_new_scan_is_linear() -> None:
    scan = SentenceScan(SentenceScanShape(features=2)).eval()
    features = np.array([[1, 2], [3, 4]], np.float32)
    weight = scan.linear.weight.detach().numpy()[0]
    expected = features @ weight + scan.linear.bias.item()
    assert scan.logits(features) == pytest.approx(expected, abs=1e-5)


def test_logits_are_rescaled(scan: SentenceScan) -> None:
    features = np.random.default_rng(1).normal(size=(40, 5)).astype(np.float32)
    before = scan.logits(features)
    scan.rescale(2.0, -1.5)
    assert scan.logits(features) == pytest.approx(2 * before - 1.5, abs=1e-4)


def test_no_sentences_have_no_logits(scan: SentenceScan) -> None:
    assert scan.logits(np.zeros((0, 5), np.float32)).shape == (0,)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"features": 0}, "features is 0; expected a whole number from 1"),
        ({"features": 5, "width": True}, "width is True; expected a whole number"),
        ({"features": 5, "state": 10**9}, "state is 1000000000; expected a whole"),
        ({"features": 5, "width": 10, "head_width": 3}, "expected a divisor of the"),
    ],
)
def test_impossible_sizes_are_refused(sizes: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SentenceScanShape(**sizes)
