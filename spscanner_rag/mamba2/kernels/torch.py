"""The kernels of a Mamba-2 layer and its norms: the interface, in plain torch."""

from __future__ import annotations

import math
import sys
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.ssd import ssd_chunked


class ScanOperands(NamedTuple):
    """The inputs of the state-space operator, without the state."""

    x: Tensor  # (batch, tokens, nheads, headdim)
    dt: Tensor  # (batch, tokens, nheads), before bias and softplus
    dt_bias: Tensor  # (nheads,)
    A: Tensor  # (nheads,), float32, negative
    B: Tensor  # (batch, tokens, ngroups, d_state)
    C: Tensor  # (batch, tokens, ngroups, d_state)
    D: Tensor  # (nheads,) or (nheads, headdim), float32


class Kernels:
    """One way to compute a layer: plain torch, on every device.

    Subclasses override what they compute.
    """

    name = "torch"
    """Its name as the ``backend`` of `Scanner.from_pretrained`."""

    packs = False
    """True if several sequences may follow each other in one row.

    A ``sequence_index`` tells them apart: (batch, tokens), int32, not decreasing, 0 for
    the state's sequence.
    """

    def most_tokens(self, config: Mamba2Config) -> int:
        """Maximum number of tokens in one forward pass, over all rows.

        Beyond it results would be wrong; here there is no limit.
        """
        return sys.maxsize

    def convolve(
        self,
        conv1d: nn.Conv1d,
        xBC: Tensor,
        tail: Tensor,
        sequence_index: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Causal depthwise convolution and SiLU, and the tail for the next tokens.

        ``tail``, (batch, d_conv - 1, conv_dim), holds the inputs before ``xBC``,
        (batch, tokens, conv_dim).
        """
        tokens = xBC.shape[1]
        # (batch, d_conv - 1 + tokens, conv_dim)
        extended = torch.cat((tail.to(xBC.dtype), xBC), dim=1)
        # On a CPU, the convolution's backward pass is several times slower in bfloat16
        # than in float32.
        dtype = torch.float32 if torch.is_grad_enabled() else xBC.dtype
        weight = conv1d.weight.to(dtype)
        bias = conv1d.bias
        convolve = depthwise_by_shifts if xBC.is_cuda else depthwise_by_image
        with torch.autocast(xBC.device.type, enabled=False):
            out = convolve(
                extended.to(dtype), weight, None if bias is None else bias.to(dtype)
            )
        out = F.silu(out, inplace=True)  # (batch, tokens, conv_dim)
        # a copy, so that the state does not keep the whole segment in memory
        return out.to(xBC.dtype), extended[:, tokens:].detach().clone()

    def scan(
        self,
        operands: ScanOperands,
        state: Tensor,
        config: Mamba2Config,
        sequence_index: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """The state-space operator: y, and the state after the last token.

        y is (batch, tokens, nheads, headdim).

        States are (batch, nheads, headdim, d_state), float32.
        """
        x, _, _, A, B, C, D = operands
        return ssd_chunked(x, time_steps(operands, config), A, B, C, D, state)

    def gated_norm(self, norm: GatedRMSNorm, y: Tensor, z: Tensor) -> Tensor:
        """RMS norm of ``y`` with the gate ``z``, both (..., d_inner)."""
        gated: Tensor = norm(y, z)
        return gated

    def norm(self, norm: RMSNorm, x: Tensor) -> Tensor:
        """RMS norm of a layer's input, (batch, tokens, d_model)."""
        normed: Tensor = norm(x)
        return normed


TORCH_KERNELS = Kernels()


def time_steps(operands: ScanOperands, config: Mamba2Config) -> Tensor:
    """Time steps after bias, softplus and clamping: (batch, tokens, nheads).

    They are float32.
    """
    steps = F.softplus(operands.dt.float() + operands.dt_bias.float())
    return (
        steps if config.dt_limit == (0.0, math.inf) else steps.clamp(*config.dt_limit)
    )


def tail_after(xBC: Tensor, tail: Tensor, sequence_index: Tensor | None) -> Tensor:
    """For kernels that pack: the last inputs of the last token's sequence.

    They are (batch, d_conv - 1, conv_dim).
    """
    tail_length = tail.shape[1]
    tokens = xBC.shape[1]
    recent = torch.cat(
        (tail.to(xBC.dtype), xBC[:, max(0, tokens - tail_length) :]), dim=1
    )
    first = recent.shape[1] - tail_length
    recent = recent[:, first:]
    if sequence_index is not None:
        index = torch.cat(
            (
                sequence_index.new_zeros(tail.shape[:2]),
                sequence_index[:, max(0, tokens - tail_length) :],
            ),
            dim=1,
        )
        others = index[:, first:] != sequence_index[:, -1:]  # (batch, d_conv - 1)
        recent = recent.masked_fill(others[..., None], 0.0)
    return recent.clone()  # so that the state does not keep the whole segment in memory


def depthwise_by_image(inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Depthwise convolution as an image of one row, the fastest way on a CPU.

    The result is (batch, tokens, channels).

    ``inputs``: (batch, d_conv - 1 + tokens, channels), ``weight``: (channels, 1,
    d_conv), ``bias``: (channels,).
    """
    # (batch, channels, 1, d_conv - 1 + tokens)
    image = inputs.transpose(1, 2).unsqueeze(2)
    return (
        F.conv2d(image, weight.unsqueeze(2), bias, groups=len(weight))
        .squeeze(2)
        .transpose(1, 2)
    )


def depthwise_by_shifts(inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The same, as one product per tap in float32, for GPUs.

    There, cuDNN rounds the factors to TF32 by default.
    """
    inputs = inputs.float()
    weight = weight.float()
    width = weight.shape[-1]
    tokens = inputs.shape[1] - width + 1
    taps = weight[:, 0].unbind(-1)  # d_conv times (channels,)
    out = inputs[:, :tokens] * taps[0]
    for shift in range(1, width):
        out = torch.addcmul(out, inputs[:, shift : shift + tokens], taps[shift])
    return out if bias is None else out + bias.float()


class RMSNorm(nn.Module):
    """``x / rms(x) * weight``, computed in float32.

    The result has the weight's dtype.
    """

    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: Tensor) -> Tensor:
        """``x``: (batch, tokens, size)."""
        normed = _over_its_rms(x.float(), self.epsilon, overwrite=False)
        return normed.mul_(self.weight.float()).to(self.weight.dtype)


class GatedRMSNorm(nn.Module):
    """RMS norm with a SiLU gate.

    Each group of ``d_inner / ngroups`` channels is normed separately.
    """

    def __init__(self, config: Mamba2Config) -> None:
        super().__init__()
        self.groups = config.ngroups
        self.epsilon = config.norm_epsilon
        self.norm_before_gate = config.norm_before_gate
        self.weight = nn.Parameter(torch.ones(config.d_inner))

    def forward(self, y: Tensor, z: Tensor) -> Tensor:
        """``y``, ``z``: (batch, tokens, d_inner)."""
        gate = F.silu(z.float())
        gated = y.float() if self.norm_before_gate else gate.mul_(y)
        by_group = gated.view(*y.shape[:-1], self.groups, y.shape[-1] // self.groups)
        normed = _over_its_rms(by_group, self.epsilon, overwrite=gated is gate)
        normed = normed.view(y.shape).mul_(self.weight.float())
        return (normed.mul_(gate) if self.norm_before_gate else normed).to(z.dtype)


def _over_its_rms(x: Tensor, epsilon: float, *, overwrite: bool) -> Tensor:
    """Divide ``x`` by the root mean square of its last dimension.

    This happens in place if ``overwrite`` allows it.
    """
    if torch.is_grad_enabled() or not x.is_cpu:
        return F.rms_norm(x, x.shape[-1:], eps=epsilon)
    # On a CPU, torch's rms_norm is a series of operations, each of which allocates a
    # tensor for its result.
    norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)  # (..., 1)
    scale = torch.rsqrt(norm.square_().div_(x.shape[-1]).add_(epsilon))
    return torch.mul(x, scale, out=x if overwrite else None)
