"""Tokens per forward pass: by device, and on a CPU by the model's width."""

import pytest

from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.scan.segment_tokens import SEGMENT_TOKENS, default_segment_tokens


@pytest.mark.parametrize(
    ("d_model", "d_state", "tokens"), [(16, 8, 4096), (256, 64, 2048), (768, 128, 1024), (2048, 128, 512)]
)
def test_wide_models_take_fewer_tokens_on_a_cpu(d_model: int, d_state: int, tokens: int) -> None:
    config = Mamba2Config(d_model=d_model, n_layer=1, vocab_size=8, d_state=d_state, headdim=8)
    assert default_segment_tokens("cpu", config) == tokens


@pytest.mark.parametrize("device_type", ["cuda", "mps"])
def test_other_devices_take_as_many_for_every_model(device_type: str) -> None:
    config = Mamba2Config(d_model=16, n_layer=1, vocab_size=8, headdim=8)
    assert default_segment_tokens(device_type, config) == SEGMENT_TOKENS[device_type]
