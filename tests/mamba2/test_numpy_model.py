"""The model in numpy computes what it computes in torch, whatever its switches."""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
import torch

from spscanner_rag.mamba2.lexical_sizes import SOFT_FEATURES
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.mamba2.numpy_model import LexicalParts, NumpyModel, model_tensors
from spscanner_rag.mamba2.reader import read_logits
from spscanner_rag.mamba2.token_sequences import TokenSequence
from tests.mamba2.conftest import CONFIG, random_model

SWITCHES: tuple[Mapping[str, object], ...] = (
    {},
    {"ngroups": 2, "norm_before_gate": True},
    {"D_has_hdim": True, "bias": True},
    {"rmsnorm": False, "conv_bias": False, "dt_limit": (0.01, 0.1)},
    {"d_conv": 3, "expand": 3, "residual_in_fp32": False},
)


def in_numpy(model: ScannerModel) -> NumpyModel:
    weights = {name: weight.numpy() for name, weight in model.state_dict().items()}
    return NumpyModel(model.config, weights)


def a_sequence(model: ScannerModel, tokens: int, seed: int = 0) -> TokenSequence:
    random = np.random.default_rng(seed)
    positions = np.sort(random.integers(0, tokens, tokens // 5))
    sequence = TokenSequence(
        random.integers(0, model.config.vocab_size, tokens), positions
    )
    if not model.prior_width:
        return sequence
    shape = len(positions), model.prior_width
    return sequence._replace(
        match_classes=random.integers(0, 7, tokens),
        match_features=random.normal(size=(tokens, SOFT_FEATURES)).astype(np.float32),
        prior=random.normal(size=shape).astype(np.float32),
    )


@pytest.mark.parametrize("switches", SWITCHES)
def test_logits_are_those_of_torch(switches: Mapping[str, object]) -> None:
    model = random_model(replace(CONFIG, **switches))  # type: ignore[arg-type]
    sequences = [a_sequence(model, tokens) for tokens in (300, 7, 64)]
    expected = read_logits(model, sequences, 128)
    logits = in_numpy(model).read_logits(sequences, 128)
    for got, wanted in zip(logits, expected, strict=True):
        assert got.dtype == np.float32
        assert got == pytest.approx(wanted, abs=1e-4)


def test_the_lexical_channel_is_that_of_torch(models: dict[bool, ScannerModel]) -> None:
    sequence = a_sequence(models[True], 200)
    (expected,) = read_logits(models[True], [sequence], 512)
    (logits,) = in_numpy(models[True]).read_logits([sequence], 512)
    assert logits == pytest.approx(expected, abs=1e-4)


def test_segments_change_only_rounding(models: dict[bool, ScannerModel]) -> None:
    model = in_numpy(models[False])
    sequence = a_sequence(models[False], 500)
    steps = list[int]()
    (whole,) = model.read_logits([sequence], 500)
    (parts,) = model.read_logits([sequence], 37, steps.append)
    assert parts == pytest.approx(whole, abs=1e-4)
    assert sum(steps) == 500
    assert max(steps) == 37


def test_an_empty_sequence_has_no_logits(models: dict[bool, ScannerModel]) -> None:
    empty = TokenSequence(np.zeros(0, np.int64), np.zeros(0, np.int64))
    (logits,) = in_numpy(models[False]).read_logits([empty], 512)
    assert logits.shape == (0,)


@pytest.mark.parametrize("switches", SWITCHES)
@pytest.mark.parametrize("has_parts", [False, True])
def test_names_and_shapes_are_those_of_torch(
    switches: Mapping[str, object], has_parts: bool
) -> None:
    config = replace(CONFIG, **switches)  # type: ignore[arg-type]
    parts = dict.fromkeys(
        ("match_embedding", "lexical_prior", "surroundings", "soft"), has_parts
    )
    with torch.random.fork_rng():
        model = ScannerModel(config, **parts)
    expected = {name: tuple(w.shape) for name, w in model.state_dict().items()}
    lexical = LexicalParts(has_parts, has_parts, has_parts, has_parts)
    assert model_tensors(config, lexical) == expected
    assert in_numpy(model).n_parameters == sum(map(math.prod, expected.values()))
