"""The network against the original's outputs and a slow reference, and its state."""

import dataclasses
import importlib.util
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F

from spscanner_rag.checkpoint import load_model
from spscanner_rag.mamba2 import model as model_module
from spscanner_rag.mamba2.backends import choose_backend
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.kernels.torch import depthwise_by_image, depthwise_by_shifts
from spscanner_rag.mamba2.model import (
    MATCH_CLASSES,
    SOFT_FEATURES,
    Projection,
    ScannerModel,
    ScanState,
)
from tests.mamba2.conftest import random_model

CONFIG = Mamba2Config(
    d_model=24, n_layer=2, vocab_size=61, d_state=8, headdim=8, ngroups=2
)
WITH_SURROUNDINGS = {
    "match_embedding": True,
    "lexical_prior": True,
    "surroundings": True,
}
VARIANTS: dict[str, dict[str, Any]] = {
    "rmsnorm": {"rmsnorm": False},
    "norm_before_gate": {"norm_before_gate": True},
    "dt_limit": {"dt_limit": (0.01, 0.05)},
    "dt_limit, one side": {"dt_limit": (0.02, math.inf)},
    "bias": {"bias": True},
    "conv_bias": {"conv_bias": False},
    "D_has_hdim": {"D_has_hdim": True},
    "d_conv 1": {"d_conv": 1},
    "d_conv 2": {"d_conv": 2},
    "one group": {"ngroups": 1},
    "a group per head": {"ngroups": 6},
    "expand": {"expand": 4},
    "norm_epsilon": {"norm_epsilon": 0.1},
}
"""Differences from CONFIG; `residual_in_fp32` has an effect only in bfloat16."""


def random_ids(model: ScannerModel, tokens: int = 50, batch: int = 2) -> Tensor:
    return torch.randint(
        model.config.vocab_size,
        (batch, tokens),
        generator=torch.Generator().manual_seed(1),
    )


@torch.inference_mode()
def in_segments(
    model: ScannerModel, ids: Tensor, segment_tokens: int
) -> tuple[Tensor, ScanState]:
    state, parts = None, []
    for segment in torch.split(ids, segment_tokens, dim=1):
        hidden, state = model(segment, state)
        parts.append(hidden)
    assert state is not None
    return torch.cat(parts, dim=1), state


def logits_and_norms(model: ScannerModel, hidden: Tensor) -> tuple[Tensor, Tensor]:
    with torch.inference_mode():
        return torch.stack([model.score(row) for row in hidden]), hidden.float().norm(
            dim=-1
        )


# Against the original


def check_oracle(
    folder: Path,
    segment_tokens: int | None,
    device: str = "cpu",
    backend: str = "torch",
) -> None:
    expected = load_file(folder / "expected.safetensors")
    model = load_model(folder, device=device)
    model.use_kernels(choose_backend(backend, torch.device(device)).kernels)
    ids = expected["input_ids"].to(device)
    hidden, _ = in_segments(model, ids, segment_tokens or ids.shape[1])
    logits, norms = (tensor.cpu() for tensor in logits_and_norms(model, hidden))
    assert logits.shape == expected["logits"].shape
    assert (logits - expected["logits"]).abs().max() <= 1e-4
    assert (
        norms - expected["last_hidden_state_norm"]
    ).abs().max() <= 1e-4 * norms.max()


SEGMENTS = [None, 1, 7, 64, 1000, 4096]
SEGMENTS_OF_MANY = [None, pytest.param(1, marks=pytest.mark.slow), 7, 64, 1000, 4096]


@pytest.mark.parametrize("backend", ["torch", "numba"])
@pytest.mark.parametrize("segment_tokens", SEGMENTS_OF_MANY)
@pytest.mark.parametrize("name", ["two-groups", "long"])
def test_oracle(
    committed_oracles: Path, name: str, segment_tokens: int | None, backend: str
) -> None:
    check_oracle(
        committed_oracles / "checkpoints" / name, segment_tokens, backend=backend
    )


@pytest.mark.parametrize("segment_tokens", SEGMENTS)
def test_oracle_published_vocabulary(oracles: Path, segment_tokens: int | None) -> None:
    check_oracle(oracles / "checkpoints" / "tiny-neox-vocab", segment_tokens)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("backend", ["torch", "mamba-ssm"])
@pytest.mark.parametrize("segment_tokens", [None, 64, 1000])
@pytest.mark.parametrize("name", ["two-groups", "long"])
def test_oracle_on_cuda(
    committed_oracles: Path, name: str, segment_tokens: int | None, backend: str
) -> None:
    if backend == "mamba-ssm" and importlib.util.find_spec("mamba_ssm") is None:
        pytest.skip("mamba-ssm is not installed")
    check_oracle(
        committed_oracles / "checkpoints" / name, segment_tokens, "cuda", backend
    )


@pytest.mark.parametrize("name", ["two-groups", "long"])
def test_committed_oracles_are_the_originals(
    oracles: Path, committed_oracles: Path, name: str
) -> None:
    for original in (oracles / "checkpoints" / name).iterdir():
        copy = committed_oracles / "checkpoints" / name / original.name
        assert copy.read_bytes() == original.read_bytes(), copy


@pytest.mark.parametrize("segment_tokens", [4100, 64])
def test_bfloat16_ranks_as_float32_does(
    committed_oracles: Path, segment_tokens: int
) -> None:
    folder = committed_oracles / "checkpoints" / "long"
    expected = load_file(folder / "expected.safetensors")
    model = load_model(folder, dtype=torch.bfloat16)
    hidden, state = in_segments(model, expected["input_ids"], segment_tokens)
    assert hidden.dtype == torch.bfloat16
    assert all(layer.ssm.dtype == torch.float32 for layer in state)
    logits, _ = logits_and_norms(model, hidden)
    best, expected_best = (
        set(row[0].topk(50).indices.tolist()) for row in (logits, expected["logits"])
    )
    assert len(best & expected_best) >= 45


# Against a reference, for every switch


def silu(x: NDArray[np.float64]) -> NDArray[np.float64]:
    gated: NDArray[np.float64] = x / (1 + np.exp(-x))
    return gated


def rms_norm(x: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
    normed: NDArray[np.float64] = x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon)
    return normed


def reference_hidden(
    model: ScannerModel, ids: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Hidden states, (tokens, d_model), as in mamba_ssm's `Mamba2.step`, in float64."""
    config, weights = (
        model.config,
        {k: v.double().numpy() for k, v in model.state_dict().items()},
    )
    residual = weights["backbone.embedding.weight"][ids]
    for number in range(config.n_layer):
        own = {
            name.removeprefix(f"backbone.layers.{number}."): value
            for name, value in weights.items()
            if name.startswith(f"backbone.layers.{number}.")
        }
        normed = rms_norm(residual, config.norm_epsilon) * own["norm.weight"]
        residual = residual + reference_mixer(config, own, normed)
    hidden: NDArray[np.float64] = (
        rms_norm(residual, config.norm_epsilon) * weights["backbone.norm_f.weight"]
    )
    return hidden


def reference_mixer(
    config: Mamba2Config,
    weights: dict[str, NDArray[np.float64]],
    u: NDArray[np.float64],
) -> NDArray[np.float64]:
    heads, width, groups, d_state = (
        config.nheads,
        config.headdim,
        config.ngroups,
        config.d_state,
    )
    A, D = -np.exp(weights["mixer.A_log"]), weights["mixer.D"]
    D = (
        D.reshape(heads, width)
        if config.D_has_hdim
        else np.repeat(D[:, None], width, axis=1)
    )
    taps = weights["mixer.conv1d.weight"][:, 0].T  # (d_conv, conv_dim), oldest first
    window = np.zeros((config.d_conv, config.conv_dim))
    state = np.zeros((heads, width, d_state))
    out = []
    for token in u:
        projected = weights["mixer.in_proj.weight"] @ token + weights.get(
            "mixer.in_proj.bias", 0
        )
        z, xBC, dt = np.split(
            projected, [config.d_inner, config.d_inner + config.conv_dim]
        )
        window = np.vstack([window[1:], xBC])
        xBC = silu((window * taps).sum(0) + weights.get("mixer.conv1d.bias", 0))
        x = xBC[: config.d_inner].reshape(heads, width)
        B, C = xBC[config.d_inner :].reshape(2, groups, d_state)
        dt = np.clip(np.log1p(np.exp(dt + weights["mixer.dt_bias"])), *config.dt_limit)
        for head in range(heads):
            group = head * groups // heads
            drive = dt[head] * np.outer(x[head], B[group])
            state[head] = math.exp(dt[head] * A[head]) * state[head] + drive
        y = (
            np.stack([state[head] @ C[head * groups // heads] for head in range(heads)])
            + D * x
        )
        y = y.ravel()
        if not config.rmsnorm:
            y = y * silu(z)
        else:
            y = y if config.norm_before_gate else y * silu(z)
            y = (
                rms_norm(y.reshape(groups, -1), config.norm_epsilon).ravel()
                * weights["mixer.norm.weight"]
            )
            y = y * silu(z) if config.norm_before_gate else y
        out.append(
            weights["mixer.out_proj.weight"] @ y + weights.get("mixer.out_proj.bias", 0)
        )
    return np.stack(out)


@pytest.mark.parametrize("name", ["plain", *VARIANTS])
def test_equals_the_reference(name: str) -> None:
    model = random_model(dataclasses.replace(CONFIG, **VARIANTS.get(name, {})))
    ids = random_ids(model)
    with torch.inference_mode():
        hidden, _ = model(ids)
    for row, row_ids in zip(hidden, ids, strict=True):
        np.testing.assert_allclose(
            row, reference_hidden(model, row_ids.numpy()), atol=1e-4
        )


@pytest.mark.parametrize("name", ["plain", "residual_in_fp32", *VARIANTS])
@pytest.mark.parametrize("segment_tokens", [1, 2, 7, 49])
def test_in_segments_equals_in_one_pass(name: str, segment_tokens: int) -> None:
    changes = (
        {"residual_in_fp32": False}
        if name == "residual_in_fp32"
        else VARIANTS.get(name, {})
    )
    model = random_model(dataclasses.replace(CONFIG, **changes))
    ids = random_ids(model)
    whole, whole_state = in_segments(model, ids, ids.shape[1])
    parts, state = in_segments(model, ids, segment_tokens)
    torch.testing.assert_close(parts, whole, atol=1e-4, rtol=0)
    for got, expected in zip(state, whole_state, strict=True):
        torch.testing.assert_close(got.conv, expected.conv, atol=1e-4, rtol=0)
        torch.testing.assert_close(got.ssm, expected.ssm, atol=1e-4, rtol=1e-4)


def test_residual_in_float32() -> None:
    high = random_model(CONFIG)
    low = random_model(dataclasses.replace(CONFIG, residual_in_fp32=False))
    ids = random_ids(high)
    with torch.inference_mode():
        # no difference with float32 weights
        assert torch.equal(high(ids)[0], low(ids)[0])
        exact = high(ids)[0]
        rounded, more_rounded = (model.bfloat16()(ids)[0] for model in (high, low))
    assert not torch.equal(rounded, more_rounded)
    assert (rounded - exact).square().mean() < (more_rounded - exact).square().mean()


# State


@pytest.mark.parametrize("tokens", [1, 3, 200])
def test_state_holds_no_more_than_itself(tokens: int) -> None:
    # a view of a segment's activations would keep all of them in memory
    model = random_model(CONFIG)
    with torch.inference_mode():
        _, state = model(random_ids(model, tokens))
    for layer in state:
        assert layer.conv.shape == (2, CONFIG.d_conv - 1, CONFIG.conv_dim)
        assert layer.ssm.shape == (2, CONFIG.nheads, CONFIG.headdim, CONFIG.d_state)
        for tensor in layer:
            stored = tensor.untyped_storage().nbytes()
            assert stored == tensor.nbytes


def test_gradients_reach_every_parameter() -> None:
    config = dataclasses.replace(CONFIG, bias=True, D_has_hdim=True)
    model = random_model(
        config, match_embedding=True, lexical_prior=True, surroundings=True, soft=True
    )
    ids = random_ids(model)
    features = torch.randn(*ids.shape, SOFT_FEATURES)
    hidden, _ = model(ids, match_classes=ids % MATCH_CLASSES, match_features=features)
    parameters = dict(model.named_parameters())
    logits = model.score(hidden[0], torch.randn(50, model.prior_width))
    gradients = torch.autograd.grad(logits.square().sum(), list(parameters.values()))
    for name, gradient in zip(parameters, gradients, strict=True):
        assert torch.isfinite(gradient).all(), name
        assert gradient.abs().max() > 0, name


# Match classes, prior, head


@pytest.mark.parametrize("has", [True, False])
def test_inputs_of_the_lexical_channel_exactly_when_there_is_one(has: bool) -> None:
    model = random_model(CONFIG, match_embedding=has, lexical_prior=has)
    ids = random_ids(model)
    hidden, classes = torch.zeros(3, CONFIG.d_model), torch.zeros_like(ids)
    with pytest.raises(ValueError, match="pass match_classes exactly when"):
        model(ids, match_classes=None if has else classes)
    with pytest.raises(ValueError, match="prior"):
        model.score(hidden, None if has else torch.zeros(3, 1))
    model = random_model(CONFIG, **WITH_SURROUNDINGS, soft=has)
    features = None if has else torch.zeros(*ids.shape, SOFT_FEATURES)
    with pytest.raises(ValueError, match="pass match_features exactly when"):
        model(ids, match_classes=classes, match_features=features)


def test_further_scores_are_weighed_by_the_hidden_state() -> None:
    model = random_model(CONFIG, **WITH_SURROUNDINGS, soft=True)
    hidden, prior = torch.randn(5, CONFIG.d_model), torch.randn(5, model.prior_width)
    layers = (
        model.binary_head,
        model.lexical_prior,
        model.surroundings,
        model.soft_prior,
    )
    head, own, around, soft = (layer for layer in layers if layer is not None)
    with torch.no_grad():
        expected = [
            head(h)[0] + own(p[:1])[0] + around(h) @ p[1:4] + soft(h) @ p[4:]
            for h, p in zip(hidden, prior, strict=True)
        ]
        torch.testing.assert_close(
            model.score(hidden, prior), torch.stack(expected), atol=1e-5, rtol=0
        )
        assert model.bfloat16().score(hidden.bfloat16(), prior).dtype == torch.float32
    with pytest.raises(
        ValueError, match=r"prior has shape \(5, 1\); expected \(5, 16\)"
    ):
        model.score(hidden, prior[:, :1])


def test_model_without_head() -> None:
    model = random_model(CONFIG, head=False)
    with torch.inference_mode():
        hidden, _ = model(random_ids(model))
    assert hidden.shape == (2, 50, CONFIG.d_model)
    with pytest.raises(ValueError, match="no relevance head"):
        model.score(hidden[0])


def test_few_numbers_of_rows_are_multiplied(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[int] = set()

    def linear(inputs: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        seen.add(len(inputs))
        return F.linear(inputs, *weights)

    monkeypatch.setattr(
        model_module, "F", type("F", (), {"linear": staticmethod(linear), "pad": F.pad})
    )
    layer = Projection(3, 2, dtype=torch.bfloat16)
    for tokens in range(1, 2049):
        assert layer(torch.zeros(1, tokens, 3, dtype=torch.bfloat16)).shape == (
            1,
            tokens,
            2,
        )
    assert len(seen) == 64


@pytest.mark.parametrize(
    "shape", [(1, 5, 8), (3, 7, 8), (40, 8), (0, 8), (2, 0, 8), (1, 16, 8)]
)
@pytest.mark.parametrize("bias", [True, False])
def test_the_products_are_those_of_a_linear_layer(
    shape: tuple[int, ...], bias: bool
) -> None:
    torch.manual_seed(0)
    plain, inputs = nn.Linear(8, 6, bias=bias), torch.randn(shape)
    layer = Projection(8, 6, bias=bias)
    layer.load_state_dict(plain.state_dict())
    assert torch.equal(layer(inputs), plain(inputs))
    plain, layer, inputs = plain.bfloat16(), layer.bfloat16(), inputs.bfloat16()
    torch.testing.assert_close(layer(inputs), plain(inputs), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("convolve", [depthwise_by_image, depthwise_by_shifts])
@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize(("d_conv", "tokens"), [(4, 1), (4, 9), (2, 3), (1, 5)])
def test_is_a_depthwise_convolution(
    convolve,  # noqa: ANN001
    with_bias: bool,
    d_conv: int,
    tokens: int,
) -> None:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(2, d_conv - 1 + tokens, 6, generator=generator)
    weight = torch.randn(6, 1, d_conv, generator=generator)
    bias = torch.randn(6, generator=generator) if with_bias else None
    got = convolve(inputs, weight, bias)  # (2, tokens, 6)
    expected = F.conv1d(inputs.transpose(1, 2), weight, bias, groups=6).transpose(1, 2)
    torch.testing.assert_close(got, expected)


def test_shifts_sum_in_float32() -> None:
    inputs = torch.tensor([[[256.0], [1.0], [1.0], [1.0]]], dtype=torch.bfloat16)
    ones = torch.ones(1, 1, 4, dtype=torch.bfloat16)
    # in bfloat16 256 + 1 is 256
    assert depthwise_by_shifts(inputs, ones, None).item() == 259.0
