"""The steps of `NumbaKernels` with gradients, for training on a CPU.

A forward pass keeps its inputs and, of the state-space operator, the state before each block of tokens; the
backward pass recomputes everything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from spscanner_rag.lab.training.kernels import adjoints as adjoints
from spscanner_rag.lab.training.kernels.sweeps import scan_backwards
from spscanner_rag.mamba2.kernels.numba.kernels import (
    LEAST_ROWS,
    NumbaKernels,
    decays,
    flat,
    in_threads,
    numbers,
    parts,
    scan_rows,
    skip_weights,
)
from spscanner_rag.mamba2.kernels.numba.steps import KEPT_TOKENS
from spscanner_rag.mamba2.kernels.packing import tail_after
from spscanner_rag.mamba2.kernels.torch import ScanOperands, time_steps

if TYPE_CHECKING:
    from spscanner_rag.mamba2.config import Mamba2Config
    from spscanner_rag.mamba2.kernels.torch import GatedRMSNorm, RMSNorm

Gradients = tuple[Tensor | None, ...]


class NumbaTrainingKernels(NumbaKernels):
    """Fused steps on a CPU, with gradients. Sums and gradients of weights are float32."""

    def convolve(
        self, conv1d: nn.Conv1d, xBC: Tensor, tail: Tensor, sequence_index: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """As in `NumbaKernels`; the tail passes gradients back, too."""
        if not torch.is_grad_enabled():
            return super().convolve(conv1d, xBC, tail, sequence_index)
        own = tail.to(xBC.dtype)
        out = _Convolution.apply(xBC, own, conv1d.weight, conv1d.bias, sequence_index, conv1d)  # type: ignore[no-untyped-call]
        return out, tail_after(xBC, tail, sequence_index)

    def scan(
        self, operands: ScanOperands, state: Tensor, config: Mamba2Config, sequence_index: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """As in `NumbaKernels`."""
        if not torch.is_grad_enabled():
            return super().scan(operands, state, config, sequence_index)
        x, _, _, A, B, C, D = operands
        y, after = _Scan.apply(x, time_steps(operands, config), A, B, C, D, state, sequence_index)  # type: ignore[no-untyped-call]
        return y, after

    def gated_norm(self, norm: GatedRMSNorm, y: Tensor, z: Tensor) -> Tensor:
        """As in `NumbaKernels`."""
        if not torch.is_grad_enabled():
            return super().gated_norm(norm, y, z)
        out: Tensor = _GatedNorm.apply(y, z, norm.weight, norm)  # type: ignore[no-untyped-call]
        return out

    def norm(self, norm: RMSNorm, x: Tensor) -> Tensor:
        """As in `NumbaKernels`, in the dtype of the product that follows."""
        if not torch.is_grad_enabled():
            return super().norm(norm, x)
        out: Tensor = _Norm.apply(x, norm.weight, norm)  # type: ignore[no-untyped-call]
        return out


class _Convolution(Function):
    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401 - torch's own
        xBC: Tensor,
        tail: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        sequence_index: Tensor | None,
        conv1d: nn.Conv1d,
    ) -> Tensor:
        """Shapes as in `Kernels.convolve`; ``weight`` and ``bias`` are those of ``conv1d``."""
        ctx.save_for_backward(xBC, tail, weight, bias, sequence_index)
        return NumbaKernels().convolve(conv1d, xBC, tail, sequence_index)[0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> Gradients:  # noqa: ANN401
        """``d_out``: (batch, tokens, conv_dim)."""
        xBC, tail, weight, bias, sequence_index = ctx.saved_tensors
        batch, tokens, channels = xBC.shape
        taps = weight.shape[-1]
        factors = numbers(weight[:, 0].float().t().contiguous())  # (taps, channels)
        added = np.zeros(channels, np.float32) if bias is None else numbers(bias.float())
        d_xBC, d_tail = torch.empty(batch, tokens, channels, dtype=xBC.dtype), torch.zeros(tail.shape)
        d_weight, d_bias = torch.zeros(batch, taps, channels), torch.zeros(batch, channels)
        before, written = numbers(tail.contiguous()), numbers(d_xBC)
        tasks = []
        for row in range(batch):
            sequence = np.empty(0, np.int32) if sequence_index is None else sequence_index[row].numpy()
            results = (written[row], d_tail[row].numpy(), d_weight[row].numpy(), d_bias[row].numpy())
            tasks.append(
                (*flat(xBC[row]), before[row], factors, added, sequence, *flat(d_out[row]), *results)
            )
        in_threads(adjoints.convolve_rows_adjoint, tasks)
        of_weight = d_weight.sum(0).t()[:, None].to(weight.dtype)  # (channels, 1, taps)
        of_bias = None if bias is None else d_bias.sum(0).to(bias.dtype)
        return d_xBC, d_tail.to(tail.dtype), of_weight, of_bias, None, None


class _Scan(Function):
    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        x: Tensor,
        dt: Tensor,
        A: Tensor,
        B: Tensor,
        C: Tensor,
        D: Tensor,
        state: Tensor,
        sequence_index: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Shapes as in `ScanOperands`; ``dt`` after bias, softplus and clamping."""
        batch, tokens, heads, headdim = x.shape
        decay = decays(dt, A, sequence_index)
        blocks = -(-tokens // KEPT_TOKENS)
        kept = torch.empty(batch, blocks + 1, *state.shape[1:])  # states, each (heads, headdim, d_state)
        y = torch.empty(batch, tokens, heads, headdim, dtype=x.dtype)
        ctx.save_for_backward(x, dt, A, B, C, D, decay, kept)
        after = state.contiguous().clone()
        scan_rows((x, B, C), D, dt, decay, after, y, kept)
        kept[:, -1] = after
        return y, after

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor, d_after: Tensor) -> Gradients:  # noqa: ANN401
        """``dy``: (batch, tokens, nheads, headdim); ``d_after``: of the state after the last token."""
        x, dt, A, B, C, D, decay, kept = ctx.saved_tensors
        batch, tokens, heads, headdim = x.shape
        shares = parts(heads, 1)
        dx, d_state = torch.empty(batch, tokens, heads, headdim, dtype=x.dtype), torch.empty(d_after.shape)
        # by thread: a group may have heads of two threads
        dB, dC = (torch.zeros(len(shares), *B.shape) for _ in range(2))
        d_dt, d_log_decay = torch.empty(dt.shape), torch.empty(dt.shape)
        d_skip = torch.zeros(batch, heads, headdim)
        times, factors, keeping = dt.contiguous().numpy(), decay.contiguous().numpy(), kept.numpy()
        after, of_x = d_after.contiguous().numpy(), numbers(dx)
        tasks = []
        for row in range(batch):
            arrays, strides = zip(*(flat(part[row].flatten(1)) for part in (x, B, C, dy)), strict=True)
            fixed = (*arrays, *strides, times[row], factors[row], skip_weights(D, heads, headdim), B.shape[2])
            states = (keeping[row], after[row], d_state[row].numpy())
            others = (d_dt[row].numpy(), d_log_decay[row].numpy(), d_skip[row].numpy())
            for number, part in enumerate(shares):
                of_group = (dB[number, row].numpy(), dC[number, row].numpy())
                tasks.append((*fixed, *states, of_x[row], *of_group, *others, *part))
        in_threads(scan_backwards, tasks)
        d_dt += d_log_decay * A
        dA = (d_log_decay * dt).sum((0, 1))
        dD = d_skip.sum(0) if D.dim() == 2 else d_skip.sum((0, 2))
        return dx, d_dt, dA, dB.sum(0).to(B.dtype), dC.sum(0).to(C.dtype), dD, d_state, None


class _GatedNorm(Function):
    @staticmethod
    def forward(ctx: Any, y: Tensor, z: Tensor, weight: Tensor, norm: GatedRMSNorm) -> Tensor:  # noqa: ANN401
        """``y`` and ``z``: (..., d_inner); ``weight`` is that of ``norm``."""
        ctx.save_for_backward(y, z, weight)
        ctx.norm = norm
        return NumbaKernels().gated_norm(norm, y, z)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> Gradients:  # noqa: ANN401
        """``d_out``: (..., d_inner)."""
        y, z, weight = ctx.saved_tensors
        norm, d_inner = ctx.norm, y.shape[-1]
        dy, dz = torch.empty(y.shape, dtype=y.dtype), torch.empty(z.shape, dtype=z.dtype)
        shares = parts(y.numel() // d_inner, LEAST_ROWS)
        d_weight = torch.zeros(len(shares), d_inner)
        rows = [numbers(part.reshape(-1, d_inner)) for part in (y, d_out.contiguous(), dy, dz)]
        fixed = (rows[0], *flat(z.flatten(0, -2)), numbers(weight.float()), norm.groups)
        options = (np.float32(norm.epsilon), norm.norm_before_gate)
        tasks = [
            (*fixed, *options, *rows[1:], d_weight[number].numpy(), *part)
            for number, part in enumerate(shares)
        ]
        in_threads(adjoints.gated_norm_rows_adjoint, tasks)
        return dy, dz, d_weight.sum(0).to(weight.dtype), None


class _Norm(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, norm: RMSNorm) -> Tensor:  # noqa: ANN401
        """``x``: (..., size); ``weight`` is that of ``norm``."""
        ctx.save_for_backward(x, weight)
        ctx.epsilon = np.float32(norm.epsilon)
        out = NumbaKernels().norm(norm, x)
        # what a product would round it to
        return out.to(torch.get_autocast_dtype("cpu")) if torch.is_autocast_enabled("cpu") else out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> Gradients:  # noqa: ANN401
        """``d_out``: (..., size)."""
        x, weight = ctx.saved_tensors
        size = x.shape[-1]
        dx = torch.empty(x.shape, dtype=x.dtype)
        shares = parts(x.numel() // size, LEAST_ROWS)
        d_weight = torch.zeros(len(shares), size)
        rows = [numbers(part.reshape(-1, size)) for part in (x, d_out.contiguous(), dx)]
        fixed = (rows[0], numbers(weight.float()), ctx.epsilon, *rows[1:])
        tasks = [(*fixed, d_weight[number].numpy(), *part) for number, part in enumerate(shares)]
        in_threads(adjoints.norm_rows_adjoint, tasks)
        return dx, d_weight.sum(0).to(weight.dtype), None
