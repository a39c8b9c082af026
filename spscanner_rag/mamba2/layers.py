"""The Mamba-2 backbone: embedding, residual blocks, final norm, and the state that they carry.

Parameter names and numbers are those of `mamba_ssm` with a Mamba-2 mixer (Dao and Gu 2024).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.kernels.torch import TORCH_KERNELS, GatedRMSNorm, Kernels, RMSNorm, ScanOperands

_FEWEST_ROWS = 16
_SIZES_PER_DOUBLING = 16


class Projection(nn.Linear):
    """A linear layer, with few different numbers of rows in bfloat16 on a CPU.

    oneDNN compiles a product for every number of rows that it meets, in up to a millisecond, and keeps the last
    thousand, up to a megabyte each: a server would grow by a gigabyte.
    """

    def forward(self, inputs: Tensor) -> Tensor:
        """(..., in_features) to (..., out_features)."""
        if inputs.device.type != "cpu" or inputs.dtype != torch.bfloat16:
            return super().forward(inputs)
        rows = inputs.reshape(-1, inputs.shape[-1])
        missing = filled(len(rows)) - len(rows)
        outputs = F.linear(F.pad(rows, (0, 0, 0, missing)) if missing else rows, self.weight, self.bias)
        return outputs[: len(rows)].view(*inputs.shape[:-1], self.out_features)


def filled(rows: int) -> int:
    """The next of the numbers that products are made for: at most a sixteenth more, above `_FEWEST_ROWS`."""
    step = max(_FEWEST_ROWS, (1 << max(0, rows - 1).bit_length()) // (2 * _SIZES_PER_DOUBLING))
    return -(-rows // step) * step


class LayerState(NamedTuple):
    """The memory that one layer has of earlier tokens."""

    conv: Tensor  # (batch, d_conv - 1, conv_dim): the last inputs of the convolution
    ssm: Tensor  # (batch, nheads, headdim, d_state), float32


class ScanState(NamedTuple):
    """The memory that the model has of earlier tokens: its size does not depend on their number."""

    layers: tuple[LayerState, ...]


Positions = tuple[Tensor, Tensor]
"""Row indices and token indices of positions in (batch, tokens): both (units,), int64."""


class Backbone(nn.Module):
    """Embedding, residual blocks and final norm."""

    recomputes = False
    """True: training keeps only the input of each block, and computes the rest again for the gradients."""

    def __init__(self, config: Mamba2Config) -> None:
        super().__init__()
        self.residual_in_fp32 = config.residual_in_fp32
        self.embedding = nn.Embedding(config.padded_vocab_size, config.d_model)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.layers = nn.ModuleList(Block(config) for _ in range(config.n_layer))
        self.norm_f = RMSNorm(config.d_model, config.norm_epsilon)

    def forward(
        self, embedded: Tensor, state: ScanState, sequence_index: Tensor | None, at: Positions | None
    ) -> tuple[Tensor, ScanState]:
        """``embedded``: (batch, tokens, d_model); with ``at``, the output is (units, d_model)."""
        residual = embedded.float() if self.residual_in_fp32 else embedded
        after = []
        last = len(self.layers) - 1
        for number, (layer, before) in enumerate(zip(self.layers, state.layers, strict=True)):
            # of the last layer, only the outputs at the requested positions are used
            inputs = residual, before, sequence_index, at if number == last else None
            if self.recomputes and torch.is_grad_enabled():
                # there is nothing random whose state would have to be kept
                residual, layer_state = checkpoint(
                    layer, *inputs, use_reentrant=False, preserve_rng_state=False
                )
            else:
                residual, layer_state = layer(*inputs)
            after.append(layer_state)
        return self.norm_f(residual), ScanState(tuple(after))


class Block(nn.Module):
    """residual + mixer(norm(residual))."""

    def __init__(self, config: Mamba2Config) -> None:
        super().__init__()
        self.norm = RMSNorm(config.d_model, config.norm_epsilon)
        self.mixer = (config.mixer or Mamba2Mixer)(config)

    def forward(
        self, residual: Tensor, state: LayerState, sequence_index: Tensor | None, at: Positions | None
    ) -> tuple[Tensor, LayerState]:
        """``residual``: (batch, tokens, d_model); with ``at``, the output is (units, d_model)."""
        normed = self.mixer.kernels.norm(self.norm, residual)
        mixed, state = self.mixer(normed, state, sequence_index, at)
        return (residual if at is None else residual[at]) + mixed, state


class Mamba2Mixer(nn.Module):
    """The Mamba-2 layer: projection, causal convolution, SSD, gated norm, projection (paper, section 7)."""

    def __init__(self, config: Mamba2Config) -> None:
        super().__init__()
        self.config = config
        self.kernels: Kernels = TORCH_KERNELS
        self.in_proj = Projection(config.d_model, config.d_in_proj, bias=config.bias)
        self.conv1d = nn.Conv1d(
            config.conv_dim, config.conv_dim, config.d_conv, groups=config.conv_dim, bias=config.conv_bias
        )
        self.dt_bias = nn.Parameter(first_steps(config.nheads))
        self.A_log = nn.Parameter(torch.empty(config.nheads).uniform_(1, 16).log())  # as in mamba-ssm
        self.D = nn.Parameter(torch.ones(config.d_inner if config.D_has_hdim else config.nheads))
        if config.rmsnorm:
            self.norm = GatedRMSNorm(config)
        self.out_proj = Projection(config.d_inner, config.d_model, bias=config.bias)

    def forward(
        self, u: Tensor, state: LayerState, sequence_index: Tensor | None, at: Positions | None
    ) -> tuple[Tensor, LayerState]:
        """``u``: (batch, tokens, d_model); with ``at``, the output is (units, d_model)."""
        config = self.config
        batch, tokens, _ = u.shape
        sizes = [config.d_inner, config.conv_dim, config.nheads]
        z, xBC, dt = torch.split(self.in_proj(u), sizes, dim=-1)
        xBC, conv_tail = self.kernels.convolve(self.conv1d, xBC, state.conv, sequence_index)
        group_width = config.ngroups * config.d_state
        x, B, C = torch.split(xBC, [config.d_inner, group_width, group_width], dim=-1)
        D = self.D.float()
        operands = ScanOperands(
            x.reshape(batch, tokens, config.nheads, config.headdim),
            dt,
            self.dt_bias,
            -torch.exp(self.A_log.float()),
            B.reshape(batch, tokens, config.ngroups, config.d_state),
            C.reshape(batch, tokens, config.ngroups, config.d_state),
            D.view(config.nheads, config.headdim) if config.D_has_hdim else D,
        )
        y, ssm = self.kernels.scan(operands, state.ssm, config, sequence_index)
        y = y.reshape(batch, tokens, config.d_inner)
        if at is not None:
            y, z = y[at], z[at]  # (units, d_inner)
        y = self.kernels.gated_norm(self.norm, y, z) if config.rmsnorm else y * F.silu(z)
        return self.out_proj(y), LayerState(conv_tail, ssm)


def first_steps(count: int) -> Tensor:
    """Initial biases of time steps, of which softplus makes steps log-uniform in [0.001, 0.1], as in mamba-ssm."""
    dt = torch.exp(torch.empty(count).uniform_(math.log(0.001), math.log(0.1)))
    return dt + torch.log(-torch.expm1(-dt))
