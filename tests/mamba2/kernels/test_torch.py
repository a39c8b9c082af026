"""Both ways against the convolution that mamba-ssm's layer is defined by."""

import pytest
import torch
import torch.nn.functional as F

from spscanner_rag.mamba2.kernels.torch import depthwise_by_image, depthwise_by_shifts


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
