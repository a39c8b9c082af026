"""The causal depthwise convolution of a Mamba-2 layer, by the ways that suit CPUs and GPUs."""

import torch
import torch.nn.functional as F
from torch import Tensor


def depthwise_by_image(inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Depthwise convolution over tokens, the fastest way on a CPU.

    As over an image of one row whose channels lie innermost: no copy to put tokens innermost.

    Parameters
    ----------
    inputs : (batch, d_conv - 1 + tokens, channels)
    weight : (channels, 1, d_conv)
    bias : (channels,), optional

    Returns
    -------
    (batch, tokens, channels)
    """
    image = inputs.transpose(1, 2).unsqueeze(2)  # (batch, channels, 1, d_conv - 1 + tokens)
    return F.conv2d(image, weight.unsqueeze(2), bias, groups=len(weight)).squeeze(2).transpose(1, 2)


def depthwise_by_shifts(inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """As `depthwise_by_image`, one product for each of the few taps, in float32.

    For GPUs, where cuDNN would round the factors to TF32 if `torch.backends.cudnn.allow_tf32` says so, which
    it does by default.
    """
    inputs, weight = inputs.float(), weight.float()
    width = weight.shape[-1]
    tokens = inputs.shape[1] - width + 1
    taps = weight[:, 0].unbind(-1)  # d_conv times (channels,)
    out = inputs[:, :tokens] * taps[0]
    for shift in range(1, width):
        out = torch.addcmul(out, inputs[:, shift : shift + tokens], taps[shift])
    return out if bias is None else out + bias.float()
