"""The SSD operator: the chunked form against the recurrence that defines it."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from spscanner_rag.mamba2.ssd import ssd_chunked


def ssd_recurrence(
    x: Tensor,
    dt: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    D: Tensor,
    initial_state: Tensor,
) -> tuple[Tensor, Tensor]:
    """The definition, token by token, with the arguments of `ssd_chunked`."""
    heads_per_group = x.shape[2] // B.shape[2]
    # (batch, tokens, heads, d_state)
    B = B.repeat_interleave(heads_per_group, dim=2).float()
    C = C.repeat_interleave(heads_per_group, dim=2).float()
    state, inputs = initial_state, x.float()
    outputs = []
    for t in range(x.shape[1]):
        decay = torch.exp(dt[:, t] * A)[..., None, None]  # (batch, heads, 1, 1)
        drive = (dt[:, t, :, None] * inputs[:, t])[..., None] * B[:, t, :, None, :]
        state = decay * state + drive  # (batch, heads, headdim, d_state)
        outputs.append((state * C[:, t, :, None, :]).sum(-1))
    y = torch.stack(outputs, dim=1) + (D if D.dim() == 2 else D[:, None]) * inputs
    return y.to(x.dtype), state


class Shape(NamedTuple):
    batch: int = 2
    tokens: int = 33
    groups: int = 2
    heads_per_group: int = 2
    headdim: int = 4
    d_state: int = 8


class Operands(NamedTuple):
    """Operands in the order of the operator's arguments."""

    x: Tensor
    dt: Tensor
    A: Tensor
    B: Tensor
    C: Tensor
    D: Tensor
    initial_state: Tensor


def operands(
    shape: Shape, *, seed: int = 0, wide_skip: bool = False, zero_state: bool = False
) -> Operands:
    """Random operands as in a network: steps log-uniform in [0.001, 1], A to -16."""
    random = torch.Generator().manual_seed(seed)

    def normal(*size: int) -> Tensor:
        return torch.randn(*size, generator=random)

    batch, tokens, groups, per_group, headdim, d_state = shape
    heads = groups * per_group
    state = normal(batch, heads, headdim, d_state)
    return Operands(
        x=normal(batch, tokens, heads, headdim),
        dt=torch.exp(
            math.log(0.001) * torch.rand(batch, tokens, heads, generator=random)
        ),
        A=-1 - 15 * torch.rand(heads, generator=random),
        B=normal(batch, tokens, groups, d_state),
        C=normal(batch, tokens, groups, d_state),
        D=normal(heads, headdim) if wide_skip else normal(heads),
        initial_state=torch.zeros_like(state) if zero_state else state,
    )


def assert_close(got: Tensor, expected: Tensor, tolerance: float = 1e-4) -> None:
    """Assert equality within ``tolerance`` of the largest value."""
    assert got.shape == expected.shape
    difference = (got.float() - expected.float()).abs().max() if got.numel() else 0.0
    scale = expected.float().abs().max() if expected.numel() else 1.0
    assert float(difference) <= tolerance * max(1.0, float(scale))


def in_chunks(inputs: Sequence[Tensor], chunk_tokens: int) -> tuple[Tensor, Tensor]:
    x, dt, A, B, C, D, initial_state = inputs
    return ssd_chunked(x, dt, A, B, C, D, initial_state, chunk_tokens)


SHAPES = st.builds(
    Shape,
    batch=st.integers(1, 3),
    tokens=st.integers(1, 70),
    groups=st.integers(1, 3),
    heads_per_group=st.integers(1, 3),
    headdim=st.integers(1, 5),
    d_state=st.integers(1, 9),
)


@settings(max_examples=100)
@given(
    SHAPES,
    st.one_of(st.integers(1, 80), st.sampled_from([1, 2, 16, 64, 256])),
    st.booleans(),
    st.booleans(),
    st.integers(0, 2**32),
)
@example(Shape(tokens=1), 64, False, False, 0)
@example(Shape(tokens=64), 64, True, False, 0)
@example(Shape(tokens=65), 64, False, False, 0)
@example(Shape(tokens=63), 64, True, True, 0)
def test_recurrence(
    shape: Shape, chunk_tokens: int, wide_skip: bool, zero_state: bool, seed: int
) -> None:
    inputs = operands(shape, seed=seed, wide_skip=wide_skip, zero_state=zero_state)
    y, state = in_chunks(inputs, chunk_tokens)
    expected_y, expected_state = ssd_recurrence(*inputs)
    assert_close(y, expected_y)
    assert_close(state, expected_state)
    assert y.dtype == state.dtype == torch.float32


@pytest.mark.parametrize("wide_skip", [False, True])
@pytest.mark.parametrize("tokens", [1, 24, 37])
def test_gradients_equal_those_of_the_recurrence(tokens: int, wide_skip: bool) -> None:
    inputs = operands(Shape(tokens=tokens), wide_skip=wide_skip)
    weight_y = torch.randn_like(inputs.x)
    weight_state = torch.randn_like(inputs.initial_state)
    gradients = []
    for operator in (lambda *operands: in_chunks(operands, 8), ssd_recurrence):
        leaves = [tensor.clone().requires_grad_() for tensor in inputs]
        y, state = operator(*leaves)
        loss = (y * weight_y).sum() + (state * weight_state).sum()
        gradients.append(torch.autograd.grad(loss, leaves))
    for name, got, expected in zip(Operands._fields, *gradients, strict=True):
        assert expected.abs().max() > 0, name  # each operand has an effect
        assert_close(got, expected)


def test_decay_to_nothing_gives_numbers() -> None:
    # exp underflows forwards and would overflow backwards
    inputs = operands(Shape(tokens=100))
    inputs = inputs._replace(dt=1000 * torch.ones_like(inputs.dt))
    y, state = ssd_chunked(*inputs)
    assert torch.isfinite(y).all()
    assert torch.isfinite(state).all()
    # only the last token is left
    B = inputs.B[:, -1].repeat_interleave(2, dim=1)  # (batch, heads, d_state)
    assert_close(state, 1000 * inputs.x[:, -1][..., None] * B[:, :, None, :])


def test_bfloat16_operands_keep_a_float32_state() -> None:
    x, dt, A, B, C, D, initial_state = operands(
        Shape(tokens=100, headdim=8, d_state=16)
    )
    low = (x.bfloat16(), dt, A, B.bfloat16(), C.bfloat16(), D, initial_state)
    y, state = in_chunks(low, 16)
    expected_y, expected_state = ssd_recurrence(*low)
    assert y.dtype == expected_y.dtype == torch.bfloat16
    assert state.dtype == expected_state.dtype == torch.float32
    assert_close(y, expected_y, 0.03)
    assert_close(state, expected_state, 0.03)


def test_state_does_not_lose_small_additions_in_bfloat16() -> None:
    # a state in bfloat16 would stop growing at 256 times the addition
    tokens = 2048
    ones = torch.ones(1, tokens, 1, 1, dtype=torch.bfloat16)
    dt, A, D = torch.full((1, tokens, 1), 0.01), torch.full((1,), -1e-6), torch.zeros(1)
    _, state = ssd_chunked(
        ones, dt, A, ones, ones, D, torch.zeros(1, 1, 1, 1), chunk_tokens=2
    )
    assert float(state) == pytest.approx(0.01 * tokens, rel=0.01)
