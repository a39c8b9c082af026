"""Layers that read units: both directions, sequences apart, steps, and no effect before training."""

import pytest
import torch
from torch import Tensor

from spscanner_rag.mamba2 import unit_context
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.kernels import Kernels
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.mamba2.numba_kernels import NumbaKernels
from spscanner_rag.mamba2.unit_context import UnitContext, context_config

CONFIG = Mamba2Config(d_model=24, n_layer=2, vocab_size=61, d_state=8, headdim=8)


def new_context(kernels: Kernels | None = None) -> UnitContext:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        context = UnitContext(CONFIG, noted=25, width=6).eval()
        torch.nn.init.normal_(context.out_proj.weight)
    for layer in context.layers:
        torch.nn.init.ones_(layer.mixer.dt_bias)  # what is read is noticed, and kept
        torch.nn.init.constant_(layer.mixer.A_log, -3.0)
        if kernels is not None:
            layer.mixer.kernels = kernels
    return context


def random_vectors(units: int) -> Tensor:
    return torch.randn(units, 6, generator=torch.Generator().manual_seed(units))


@torch.inference_mode()
def test_every_unit_counts_for_every_other() -> None:
    context, vectors = new_context(), random_vectors(12)
    before = context(vectors)
    for changed in (0, 5, 11):
        other = vectors.clone()
        other[changed] += 1.0
        assert ((context(other) - before).abs() > 1e-7).all()


@torch.inference_mode()
@pytest.mark.parametrize("step", [1, 2, 5, 100])
@pytest.mark.parametrize("kernels", [None, NumbaKernels()], ids=["torch", "numba"])
def test_steps_change_nothing(step: int, kernels: Kernels | None, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = random_vectors(23)
    whole = new_context()(vectors)
    monkeypatch.setattr(unit_context, "STEP_UNITS", step)
    torch.testing.assert_close(new_context(kernels)(vectors), whole, atol=1e-5, rtol=1e-5)


@torch.inference_mode()
@pytest.mark.parametrize("step", [3, 8, 100])
@pytest.mark.parametrize("sizes", [[5, 1, 9], [3, 3], [1], [8, 0, 8], [0, 4]])
def test_packed_sequences_do_not_meet(sizes: list[int], step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_context, "STEP_UNITS", step)
    parts = [random_vectors(size) for size in sizes]
    alone = torch.cat([new_context()(part) for part in parts])
    index = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes)).int()
    packed = new_context(NumbaKernels())(torch.cat(parts), index - index[0])
    torch.testing.assert_close(packed, alone, atol=1e-5, rtol=1e-5)


@torch.inference_mode()
@pytest.mark.parametrize("kernels", [None, NumbaKernels()], ids=["torch", "numba"])
def test_no_unit(kernels: Kernels | None) -> None:
    assert new_context(kernels)(random_vectors(0)).shape == (0,)


@torch.inference_mode()
def test_a_new_one_changes_no_logit() -> None:
    torch.manual_seed(0)
    plain = ScannerModel(CONFIG)
    grown = ScannerModel(CONFIG, context_width=6)
    grown.load_state_dict(plain.state_dict(), strict=False)
    hidden = torch.randn(7, 24)
    assert torch.equal(grown.score(hidden), plain.score(hidden))
    assert plain.noted_numbers == 1
    assert grown.noted_numbers == 7
    assert grown.note(hidden).shape == (7, 7)


@torch.inference_mode()
@pytest.mark.parametrize("kernels", [None, NumbaKernels()], ids=["torch", "numba"])
def test_logits_of_each_sequence(kernels: Kernels | None) -> None:
    torch.manual_seed(0)
    model = ScannerModel(CONFIG, context_width=6)
    assert model.unit_context is not None
    torch.nn.init.normal_(model.unit_context.out_proj.weight)
    if kernels is not None:
        model.use_kernels(kernels)
    hidden = [torch.randn(units, 24) for units in (0, 4, 0, 1, 6)]
    alone = [model.score(of_one) for of_one in hidden]
    for one, other in zip(model.logits_of_each([model.note(h) for h in hidden]), alone, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def test_gradients_reach_every_weight() -> None:
    context, vectors = new_context(), random_vectors(9).requires_grad_()
    context(vectors).square().sum().backward()
    weights = dict(context.named_parameters())
    assert all(weight.grad is not None for name, weight in weights.items() if not name.startswith("in_proj"))
    assert vectors.grad is not None
    assert (vectors.grad.abs().sum(1) > 0).all()


def test_odd_widths_are_refused() -> None:
    with pytest.raises(ValueError, match="context_width is 7; expected an even number"):
        context_config(CONFIG, 7)
