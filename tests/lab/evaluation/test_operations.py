"""Operations by formula, by hand and as torch counts them."""

from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from spscanner_lab.evaluation.operations import (
    encoder_products,
    padded_lengths,
    scan_products,
)
from spscanner_rag.encoder.bert import Bert, BertShape
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.mamba2.ssd_blocks import CHUNK_TOKENS

SHAPE = BertShape(
    hidden_size=8,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=12,
    vocab_size=20,
    max_position_embeddings=64,
)


@pytest.mark.parametrize(
    "shape",
    [{}, {"ngroups": 2, "d_conv": 3, "expand": 1}, {"d_state": 64, "headdim": 32}],
)
def test_products_of_a_scan_are_those_that_torch_counts(shape: dict[str, int]) -> None:
    sizes = {"d_model": 32, "n_layer": 3, "vocab_size": 40, "d_state": 16, "headdim": 8}
    config = Mamba2Config(**{**sizes, **shape})
    model, tokens = ScannerModel(config), 3 * CHUNK_TOKENS
    at = (torch.zeros(5, dtype=torch.long), torch.arange(5))
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model.score(model(torch.zeros(1, tokens, dtype=torch.long), at=at)[0])
    assert scan_products(config, tokens, 5) == counter.get_total_flops()


def test_products_of_a_scan_by_hand() -> None:
    config = Mamba2Config(
        d_model=4, n_layer=1, vocab_size=9, d_state=2, headdim=4, d_conv=3, expand=1
    )
    # d_inner is 4: the input projection makes z and x of 4, B and C of 2, and one step
    into = 4 * (4 + 4 + 2 + 2 + 1)
    convolution = 3 * (4 + 2 + 2)
    block = CHUNK_TOKENS * (2 + 4)
    state = 2 * 4 * 2
    of_unit = 4 * 4 + 4  # the only layer's output projection, and the head
    by_hand = 2 * (10 * (into + convolution + block + state) + 3 * of_unit)
    assert scan_products(config, tokens=10, units=3) == by_hand


def test_products_of_an_encoder_by_hand_and_as_torch_counts_them() -> None:
    # of a token: four projections of 8 x 8, and 8 x 12 twice; of a pair: 8 twice
    assert encoder_products(SHAPE, [5]) == 2 * 2 * (5 * (4 * 64 + 2 * 96) + 2 * 25 * 8)
    weights: Any = {name: torch.zeros(shape) for name, shape in SHAPE.tensors().items()}
    tokens = [1] * 32  # fewer would be filled up on a CPU
    plain = sdpa_kernel(SDPBackend.MATH)  # torch does not count the fused attention
    with torch.no_grad(), plain, FlopCounterMode(display=False) as counter:
        Bert(SHAPE, weights).states([tokens])
    assert encoder_products(SHAPE, [32]) == counter.get_total_flops()


def test_padding_is_to_the_longest_of_a_batch() -> None:
    assert padded_lengths([3, 5, 2, 4, 1], 2) == [5, 5, 4, 4, 1]
    assert padded_lengths([], 2) == []
    padded = encoder_products(SHAPE, padded_lengths([5, 3], 2))
    assert padded == 2 * encoder_products(SHAPE, [5]) > encoder_products(SHAPE, [5, 3])
