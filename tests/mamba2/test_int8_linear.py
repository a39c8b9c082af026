"""Projections in int8: what they compute, that nothing else changes, and where they are refused."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from torch import Tensor, nn

from spscanner_rag.checkpoint import ScannerSettings, load_model, save_checkpoint
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.int8_linear import Int8Linear, projection_dtype, with_int8_projections
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.mamba2.reader import TokenSequence, read_logits

needs_int8 = pytest.mark.usefixtures("int8")


def int8_of(linear: nn.Linear) -> Int8Linear:
    """As a model's projections become it while they are loaded."""
    own = Int8Linear(linear)
    state = ((f"layer.in_proj.{name}", tensor) for name, tensor in linear.state_dict().items())
    stored = {name.removeprefix("layer.in_proj."): t for name, t in with_int8_projections(state)}
    own.load_state_dict(stored)
    return own


def linear_of(inputs: int, outputs: int, *, bias: bool = False) -> nn.Linear:
    return nn.Linear(inputs, outputs, bias=bias).requires_grad_(False)


@needs_int8
@settings(max_examples=100)
@given(st.integers(0, 1100), st.integers(1, 70), st.integers(1, 70), st.booleans(), st.integers(-20, 20))
@example(0, 8, 8, True, 0)
@example(512, 16, 24, True, 0)
@example(513, 16, 24, False, 0)
def test_error_is_that_of_rounding(tokens: int, inputs: int, outputs: int, bias: bool, power: int) -> None:
    torch.manual_seed(0)
    linear = linear_of(inputs, outputs, bias=bias)
    x = torch.randn(tokens, inputs) * 2.0**power
    # half a step for the input and for the weight, the largest of each row being 127 steps
    largest_x, largest_w = (
        x.abs().amax(-1, keepdim=True),
        linear.weight.abs().amax(-1),
    )  # (tokens, 1), (outputs,)
    slack = inputs * largest_x * largest_w * (2 * 0.5 / 127 + (0.5 / 127) ** 2)
    got = int8_of(linear)(x)
    assert got.dtype == torch.float32
    assert got.shape == (tokens, outputs)
    assert ((got - linear(x)).abs() <= slack + 1e-6 * (1 + got.abs())).all()


@needs_int8
def test_numbers_of_few_bits_are_exact() -> None:
    linear = linear_of(300, 20, bias=True)
    linear.weight.copy_(torch.randint(-127, 128, (20, 300)))
    linear.weight[:, 0] = 127
    x = torch.randint(-127, 128, (2, 7, 300)).float()
    x[..., 1] = -127
    expected = x.double() @ linear.weight.double().T + linear.bias.double()
    np.testing.assert_allclose(int8_of(linear)(x).double(), expected, rtol=1e-6)


@needs_int8
def test_a_token_is_read_alike_whatever_stands_beside_it() -> None:
    own = int8_of(linear_of(64, 48, bias=True))
    x = torch.randn(1500, 64)
    x[700] *= 1e4  # a scale for all tokens would leave nothing of the others
    together = own(x)
    for token in (0, 511, 512, 699, 700, 1499):
        assert torch.equal(own(x[token]), together[token])
    assert torch.equal(own(x.view(3, 500, 64)), together.view(3, 500, 48))


@needs_int8
def test_zeros_and_what_is_not_finite() -> None:
    linear = linear_of(32, 16)
    linear.weight[3] = 0
    x = torch.randn(4, 32)
    x[0], x[1, 5], x[2, 5] = 0, float("nan"), float("inf")
    got = int8_of(linear)(x)
    assert (got[0] == 0).all()
    assert got[1].isnan().all()
    assert got[2].isnan().all()
    assert got[3].isfinite().all()
    assert got[3, 3] == 0
    assert got[3].abs().sum() > 0


@needs_int8
@pytest.mark.parametrize("name", ["two-groups", "long"])
@pytest.mark.parametrize("segment_tokens", [64, 1000, 100_000])
def test_oracle(committed_oracles: Path, name: str, segment_tokens: int) -> None:
    folder = committed_oracles / "checkpoints" / name
    expected = load_file(folder / "expected.safetensors")
    ids = expected["input_ids"].numpy().astype(np.int32)
    positions = np.arange(ids.shape[1])
    model = load_model(folder, dtype=torch.int8)
    logits = read_logits(model, [TokenSequence(row, positions) for row in ids], segment_tokens)
    for got, wanted in zip(logits, expected["logits"].numpy(), strict=True):
        assert 1e-4 < np.abs(got - wanted).max() < 0.05  # of a standard deviation of 0.55
        best, theirs = (set(np.argsort(-values)[:50]) for values in (got, wanted))
        assert len(best & theirs) >= 48


@needs_int8
def test_only_the_projections_change(tiny_checkpoint: Path) -> None:
    plain, own = load_model(tiny_checkpoint), load_model(tiny_checkpoint, dtype=torch.int8)
    assert (projection_dtype(plain), projection_dtype(own)) == (torch.float32, torch.int8)
    assert own.dtype == torch.float32  # of activations, and so of the carried state
    assert not own.training
    before, after = plain.state_dict(), own.state_dict()
    rounded = {name for name in before if name.endswith(("in_proj.weight", "out_proj.weight"))}
    assert len(rounded) == 2 * plain.config.n_layer
    assert after.keys() == before.keys() | {f"{name}_scale" for name in rounded}
    for name, tensor in before.items():
        if name not in rounded:
            assert torch.equal(after[name], tensor), name
            continue
        restored = after[name].T * after[f"{name}_scale"][:, None]
        step = tensor.abs().amax(1, keepdim=True) / 127
        assert ((restored - tensor).abs() <= step * 0.501).all(), name


@needs_int8
def test_biases_are_kept(tmp_path: Path) -> None:
    config = Mamba2Config(d_model=16, n_layer=1, vocab_size=61, d_state=8, headdim=8, bias=True)
    save_checkpoint(tmp_path / "biased", ScannerModel(config), ScannerSettings(), None)
    plain, own = load_model(tmp_path / "biased"), load_model(tmp_path / "biased", dtype=torch.int8)
    ids = torch.arange(40)[None]
    with torch.inference_mode():
        difference = plain(ids)[0] - own(ids)[0]
    assert 0 < difference.abs().max() < 0.1
    mixer = own.backbone.layers[0].mixer
    assert torch.equal(mixer.in_proj.bias, plain.backbone.layers[0].mixer.in_proj.bias)


@pytest.mark.parametrize("device", ["cuda", "mps", "meta"])
def test_other_devices_are_refused(tiny_checkpoint: Path, device: str) -> None:
    with pytest.raises(ValueError, match=f"dtype is 'int8', which is for the CPU, and the device {device}"):
        load_model(tiny_checkpoint, device=device, dtype=torch.int8)


def test_a_processor_that_adds_in_16_bits_is_refused(
    tiny_checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def saturating(left: Tensor, right: Tensor) -> Tensor:
        """As vpmaddubsw adds: the left side made positive, then pairs of products in int16."""
        shifted = (left.int() + 128).unflatten(1, (-1, 2))
        pairs = torch.einsum("ikp,kpj->ikj", shifted, right.int().unflatten(0, (-1, 2)))
        return pairs.clamp(-(2**15), 2**15 - 1).sum(1).int() - 128 * right.int().sum(0)

    monkeypatch.setattr(torch, "_int_mm", saturating)
    with pytest.raises(ValueError, match="sums of int8 products overflow; use 'float32' or 'auto'"):
        load_model(tiny_checkpoint, dtype=torch.int8)


def test_loading_needs_no_float_copy_of_the_model() -> None:
    """Projections are rounded one by one as they come: none is asked for before the last one is given on."""
    asked = []

    def tensors() -> object:
        for layer in range(3):
            asked.append(layer)
            yield f"layers.{layer}.in_proj.weight", torch.ones(4, 4)

    for number, _ in enumerate(with_int8_projections(tensors())):  # type: ignore[arg-type]
        assert len(asked) == number // 2 + 1
