"""Linear layers with few numbers of rows: the same products, filled up in bfloat16 on a CPU only."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from spscanner_rag.mamba2 import layers
from spscanner_rag.mamba2.layers import Projection, filled


@given(st.integers(0, 100_000))
def test_at_most_a_sixteenth_is_filled_up(rows: int) -> None:
    assert rows <= filled(rows) <= max(16, rows + rows / 16 + 16)
    assert filled(filled(rows)) == filled(rows)


def test_few_numbers_of_rows_are_multiplied(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[int] = set()

    def linear(inputs: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        seen.add(len(inputs))
        return F.linear(inputs, *weights)

    monkeypatch.setattr(layers, "F", type("F", (), {"linear": staticmethod(linear), "pad": F.pad}))
    layer = Projection(3, 2, dtype=torch.bfloat16)
    for tokens in range(1, 2049):
        assert layer(torch.zeros(1, tokens, 3, dtype=torch.bfloat16)).shape == (1, tokens, 2)
    assert len(seen) == 64


@pytest.mark.parametrize("shape", [(1, 5, 8), (3, 7, 8), (40, 8), (0, 8), (2, 0, 8), (1, 16, 8)])
@pytest.mark.parametrize("bias", [True, False])
def test_the_products_are_those_of_a_linear_layer(shape: tuple[int, ...], bias: bool) -> None:
    torch.manual_seed(0)
    plain, inputs = nn.Linear(8, 6, bias=bias), torch.randn(shape)
    layer = Projection(8, 6, bias=bias)
    layer.load_state_dict(plain.state_dict())
    assert torch.equal(layer(inputs), plain(inputs))
    plain, layer, inputs = plain.bfloat16(), layer.bfloat16(), inputs.bfloat16()
    torch.testing.assert_close(layer(inputs), plain(inputs), rtol=1e-2, atol=1e-2)


def test_gradients_pass_the_rows_that_were_filled_up() -> None:
    layer = Projection(4, 3, dtype=torch.bfloat16)
    inputs = torch.randn(2, 5, 4, dtype=torch.bfloat16, requires_grad=True)
    layer(inputs).float().sum().backward()
    assert inputs.grad is not None
    torch.testing.assert_close(inputs.grad, layer.weight.sum(0).expand(2, 5, 4), rtol=2e-2, atol=2e-2)
