"""Linear layers with few numbers of rows, and the convolution: the same products as those of plain layers."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from spscanner_rag.mamba2 import layers
from spscanner_rag.mamba2.kernels.torch import depthwise_by_image, depthwise_by_shifts
from spscanner_rag.mamba2.layers import Projection


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


@pytest.mark.parametrize("convolve", [depthwise_by_image, depthwise_by_shifts])
@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize(("d_conv", "tokens"), [(4, 1), (4, 9), (2, 3), (1, 5)])
def test_is_a_depthwise_convolution(convolve, with_bias: bool, d_conv: int, tokens: int) -> None:  # noqa: ANN001
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
    assert depthwise_by_shifts(inputs, ones, None).item() == 259.0  # in bfloat16 256 + 1 is 256
