"""The sentence scan in numpy computes what it computes in torch."""

import numpy as np
import pytest
import torch

from spscanner_rag.mamba2.numpy_sentence_scan import NumpySentenceScan, scan_tensors
from spscanner_rag.mamba2.sentence_scan import SentenceScan
from spscanner_rag.mamba2.sentence_scan_shape import SentenceScanShape

SHAPE = SentenceScanShape(features=5, width=16, head_width=8)


@pytest.mark.parametrize("sentences", [0, 1, 300])
def test_logits_are_those_of_torch(sentences: int) -> None:
    scan = SentenceScan(SHAPE).eval()
    torch.nn.init.normal_(scan.head.weight)
    weights = {name: weight.numpy() for name, weight in scan.state_dict().items()}
    random = np.random.default_rng(0)
    features = random.normal(size=(sentences, 5)).astype(np.float32)
    logits = NumpySentenceScan(SHAPE, weights).logits(features)
    assert logits.dtype == np.float32
    assert logits == pytest.approx(scan.logits(features), abs=1e-4)


def test_names_and_shapes_are_those_of_torch() -> None:
    expected = {}
    for name, weight in SentenceScan(SHAPE).state_dict().items():
        expected[name] = tuple(weight.shape)
    assert scan_tensors(SHAPE) == expected
