"""The steps of `NumbaKernels` with gradients, for training on a CPU.

A forward pass keeps only its inputs; the backward pass recomputes everything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from spscanner_lab.training.kernels import adjoints
from spscanner_rag.mamba2.kernels.numba.kernels import (
    LEAST_ROWS,
    NumbaKernels,
    decays,
    in_threads,
    numbers,
    parts,
    scan_rows,
)
from spscanner_rag.mamba2.kernels.numba.vectors import LANES
from spscanner_rag.mamba2.kernels.torch import ScanOperands, tail_after, time_steps

if TYPE_CHECKING:
    from spscanner_rag.mamba2.config import Mamba2Config
    from spscanner_rag.mamba2.kernels.torch import GatedRMSNorm

Gradients = tuple[Tensor | None, ...]
_TINY = torch.finfo(torch.float32).tiny


class NumbaTrainingKernels(NumbaKernels):
    """Fused steps on a CPU, with gradients.

    Sums and gradients of weights are float32.
    """

    def convolve(
        self,
        conv1d: nn.Conv1d,
        xBC: Tensor,
        tail: Tensor,
        sequence_index: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """As in `NumbaKernels`, but gradients also flow back through the tail."""
        if not torch.is_grad_enabled():
            return super().convolve(conv1d, xBC, tail, sequence_index)
        converted_tail = tail.to(xBC.dtype)
        out = _Convolution.apply(
            xBC, converted_tail, conv1d.weight, conv1d.bias, sequence_index, conv1d
        )  # type: ignore[no-untyped-call]
        return out, tail_after(xBC, tail, sequence_index)

    def scan(
        self,
        operands: ScanOperands,
        state: Tensor,
        config: Mamba2Config,
        sequence_index: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """As in `NumbaKernels`."""
        if not torch.is_grad_enabled():
            return super().scan(operands, state, config, sequence_index)
        x, _, _, A, B, C, D = operands
        y, after = _Scan.apply(
            x, time_steps(operands, config), A, B, C, D, state, sequence_index
        )  # type: ignore[no-untyped-call]
        return y, after

    def gated_norm(self, norm: GatedRMSNorm, y: Tensor, z: Tensor) -> Tensor:
        """As in `NumbaKernels`."""
        if not torch.is_grad_enabled():
            return super().gated_norm(norm, y, z)
        out: Tensor = _GatedNorm.apply(  # type: ignore[no-untyped-call]
            y, z, norm.weight, norm
        )
        return out


class _Convolution(Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:  # noqa: ANN401 - torch's own
        """Shapes as in `Kernels.convolve`.

        ``weight`` and ``bias`` are those of ``conv1d``.
        """
        xBC, tail, weight, bias, sequence_index, conv1d = inputs
        ctx.save_for_backward(xBC, tail, weight, bias, sequence_index)
        return NumbaKernels().convolve(conv1d, xBC, tail, sequence_index)[0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> Gradients:  # noqa: ANN401
        """``d_out``: (batch, tokens, conv_dim)."""
        xBC, tail, weight, bias, sequence_index = ctx.saved_tensors
        batch, before, channels = tail.shape
        inputs = torch.cat((tail, xBC), dim=1)
        slopes = d_out.contiguous()
        if sequence_index is None:
            sequence_index = torch.zeros(xBC.shape[:2], dtype=torch.int32)
        # the tail belongs to sequence 0
        sequence = F.pad(sequence_index, (before, 0)).numpy()
        factors = numbers(weight[:, 0].float().t().contiguous())  # (taps, channels)
        if bias is None:
            added = np.zeros(channels, np.float32)
        else:
            added = numbers(bias.float())
        d_inputs = torch.zeros(inputs.shape)
        d_weight = torch.zeros(batch, before + 1, channels)
        d_bias = torch.zeros(batch, channels)
        tasks = []
        for row in range(batch):
            task = (
                numbers(inputs[row]),
                factors,
                added,
                sequence[row],
                numbers(slopes[row]),
                d_inputs[row].numpy(),
                d_weight[row].numpy(),
                d_bias[row].numpy(),
            )
            tasks.append(task)
        in_threads(adjoints.convolution, tasks)
        d_tail, d_xBC = torch.split(
            d_inputs.to(xBC.dtype), [before, xBC.shape[1]], dim=1
        )
        of_weight = d_weight.sum(0).t()[:, None].to(weight.dtype)  # (channels, 1, taps)
        of_bias = None
        if bias is not None:
            of_bias = d_bias.sum(0).to(bias.dtype)
        return d_xBC, d_tail, of_weight, of_bias, None, None


class _Scan(Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, Tensor]:  # noqa: ANN401
        """Shapes as in `ScanOperands`, ``dt`` after bias, softplus and clamping."""
        x, dt, A, B, C, D, state, sequence_index = inputs
        decay = decays(dt, A, sequence_index)
        ctx.save_for_backward(x, dt, A, B, C, D, decay, state)
        y = torch.empty(x.shape, dtype=x.dtype)
        after = state.contiguous().clone()
        scan_rows((x, B, C), D, dt, decay, after, y)
        return y, after

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor, d_after: Tensor) -> Gradients:  # noqa: ANN401
        """``dy``: (batch, tokens, nheads, headdim).

        ``d_after``: that of the state after the last token.
        """
        x, dt, A, B, C, D, decay, state = ctx.saved_tensors
        headdim, d_state = state.shape[-2:]
        steps = dt.transpose(1, 2)[..., None]  # (batch, nheads, tokens, 1)
        u = _by_head(x).mul_(steps)
        slopes = _by_head(dy)
        padding = (0, -d_state % LANES, 0, -headdim % LANES)
        state_before = F.pad(state, padding)
        B_by_head = _by_head(B)
        inputs = [
            u,
            B_by_head,
            _by_head(C),
            slopes,
            decay.transpose(1, 2),
            state_before,
            F.pad(d_after, padding),
        ]
        shares = parts(x.shape[2], 1)
        # one for each thread, since two threads may have heads of the same group
        dB = torch.zeros(len(shares), *B_by_head.shape)
        dC = torch.zeros(len(shares), *B_by_head.shape)
        du = torch.zeros_like(u)
        d_before = torch.empty(state_before.shape)
        of_u = torch.empty(u.shape[:-1])
        d_log_decay = torch.empty(u.shape[:-1])
        tasks = []
        for row in range(len(x)):
            row_inputs = [operand[row].contiguous().numpy() for operand in inputs]
            for number, (first, last) in enumerate(shares):
                task = (
                    *row_inputs,
                    du[row].numpy(),
                    dB[number, row].numpy(),
                    dC[number, row].numpy(),
                    of_u[row].numpy(),
                    d_log_decay[row].numpy(),
                    d_before[row].numpy(),
                    first,
                    last,
                )
                tasks.append(task)
        in_threads(adjoints.scan, tasks)
        d_dt = of_u.transpose(1, 2) / dt.clamp_min(_TINY)
        d_log_decay = d_log_decay.transpose(1, 2)
        skip = D if D.dim() == 2 else D[:, None]
        dD = (x * dy).sum((0, 1), dtype=torch.float32)  # (nheads, headdim)
        if D.dim() != 2:
            dD = dD.sum(-1)
        dx = du.mul_(steps)[..., :headdim].addcmul_(
            slopes[..., :headdim], skip[:, None]
        )
        return (
            torch.empty(x.shape, dtype=x.dtype).copy_(dx.transpose(1, 2)),
            d_dt + d_log_decay * A,
            (d_log_decay * dt).sum((0, 1)),
            dB.sum(0).transpose(1, 2)[..., :d_state].to(B.dtype),
            dC.sum(0).transpose(1, 2)[..., :d_state].to(B.dtype),
            dD,
            d_before[..., :headdim, :d_state],
            None,
        )


def _by_head(part: Tensor) -> Tensor:
    """(batch, tokens, heads, size) as (batch, heads, tokens, size), in float32.

    Padded with zeros to full vectors.
    """
    batch, tokens, heads, size = part.shape
    padded = torch.zeros(batch, heads, tokens, -(-size // LANES) * LANES)
    padded[..., :size] = part.transpose(1, 2)
    return padded


class _GatedNorm(Function):
    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        y: Tensor,
        z: Tensor,
        weight: Tensor,
        norm: GatedRMSNorm,
    ) -> Tensor:
        """``y`` and ``z``: (..., d_inner), and ``weight`` is that of ``norm``."""
        ctx.save_for_backward(y, z, weight)
        ctx.norm = norm
        return NumbaKernels().gated_norm(norm, y, z)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> Gradients:  # noqa: ANN401
        """``d_out``: (..., d_inner)."""
        y, z, weight = ctx.saved_tensors
        norm = ctx.norm
        d_inner = len(weight)
        dy = torch.empty(y.shape, dtype=y.dtype)
        dz = torch.empty(z.shape, dtype=z.dtype)
        shares = parts(y.numel() // d_inner, LEAST_ROWS)
        d_weight = torch.zeros(len(shares), d_inner)
        rows = [
            numbers(part.contiguous().view(-1, d_inner))
            for part in (y, z, d_out, dy, dz)
        ]
        options = (
            numbers(weight.float()),
            norm.groups,
            np.float32(norm.epsilon),
            norm.norm_before_gate,
        )
        tasks = [
            (*rows[:2], *options, *rows[2:], d_weight[number].numpy(), *part)
            for number, part in enumerate(shares)
        ]
        in_threads(adjoints.gated_norm, tasks)
        return dy, dz, d_weight.sum(0).to(weight.dtype), None
