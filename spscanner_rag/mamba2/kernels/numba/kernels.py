"""The layers' steps compiled by numba, for ``backend="numba"``.

They run in as many threads as torch uses. These are Python threads: some of numba's own
thread pools cannot be used by two threads at once, and some do not survive a fork.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from spscanner_rag.mamba2.kernels.numba.steps import (
    convolve_rows,
    gated_norm_rows,
    norm_rows,
    scan_heads,
)
from spscanner_rag.mamba2.kernels.torch import (
    Kernels,
    ScanOperands,
    tail_after,
    time_steps,
)
from spscanner_rag.mamba2.ssd_blocks import SMALLEST_LOG_DECAY

if TYPE_CHECKING:
    from spscanner_rag.mamba2.config import Mamba2Config
    from spscanner_rag.mamba2.kernels.torch import GatedRMSNorm, RMSNorm


LEAST_ROWS = 64  # minimum number of tokens that are worth a thread


def numbers(tensor: Tensor) -> NDArray[Any]:
    """A tensor's memory as float32, or bfloat16 as uint16."""
    tensor = tensor.detach()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(np.uint16)
    return tensor.float().numpy()


def flat(rows: Tensor) -> tuple[NDArray[Any], int]:
    """The memory of a matrix, (rows, width), and the distance between rows."""
    if rows.stride(-1) != 1:
        rows = rows.contiguous()
    count, width = rows.shape
    stride = rows.stride(0)
    size = (count - 1) * stride + width if count else 0
    return numbers(rows.as_strided((size,), (1,))), stride


def parts(rows: int, least: int) -> list[tuple[int, int]]:
    """First row, and row after the last, of each thread's part.

    A part has at least ``least`` rows.
    """
    count = max(1, min(torch.get_num_threads(), rows // least))
    bounds = np.linspace(0, rows, count + 1).astype(int).tolist()
    return list(pairwise(bounds))


def in_threads(function: Callable[..., None], tasks: Sequence[tuple[Any, ...]]) -> None:
    """Call a compiled function with each tuple of arguments.

    It does not hold Python's global lock.
    """
    threads = min(torch.get_num_threads(), len(tasks))
    first_tasks = tasks[::threads] if threads else tasks

    def run(share: Sequence[tuple[Any, ...]]) -> None:
        for arguments in share:
            function(*arguments)

    others = [
        _pool(os.getpid()).submit(run, tasks[first::threads])
        for first in range(1, threads)
    ]
    run(first_tasks)
    for other in others:
        other.result()


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """The threads beside the caller's.

    A forked child has none of its parent's threads, so it makes new ones.
    """
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="spscanner")


class NumbaKernels(Kernels):
    """Fused steps on a CPU, and plain torch if gradients are needed."""

    name = "numba"
    packs = True

    def convolve(
        self,
        conv1d: nn.Conv1d,
        xBC: Tensor,
        tail: Tensor,
        sequence_index: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Use `convolve_rows`."""
        if torch.is_grad_enabled():
            return super().convolve(conv1d, xBC, tail, sequence_index)
        batch, tokens, channels = xBC.shape
        out = torch.empty(batch, tokens, channels, dtype=xBC.dtype)
        # (d_conv, conv_dim)
        weight = numbers(conv1d.weight[:, 0].float().t().contiguous())
        bias = (
            np.zeros(channels, np.float32)
            if conv1d.bias is None
            else numbers(conv1d.bias.float())
        )
        before = numbers(tail.to(xBC.dtype).contiguous())
        written = numbers(out)
        tasks = []
        for row in range(batch):
            inputs, stride = flat(xBC[row])
            sequence = (
                np.empty(0, np.int32)
                if sequence_index is None
                else sequence_index[row].numpy()
            )
            fixed = (inputs, stride, before[row], weight, bias, sequence, written[row])
            tasks += [(*fixed, *part) for part in parts(tokens, LEAST_ROWS)]
        in_threads(convolve_rows, tasks)
        return out, tail_after(xBC, tail, sequence_index)

    def scan(
        self,
        operands: ScanOperands,
        state: Tensor,
        config: Mamba2Config,
        sequence_index: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Use `scan_heads`."""
        if torch.is_grad_enabled():
            return super().scan(operands, state, config, sequence_index)
        x, _, _, A, B, C, D = operands
        dt = time_steps(operands, config)  # (batch, tokens, nheads)
        after = state.contiguous().clone()
        out = torch.empty(x.shape, dtype=x.dtype)
        scan_rows((x, B, C), D, dt, decays(dt, A, sequence_index), after, out)
        return out, after

    def gated_norm(self, norm: GatedRMSNorm, y: Tensor, z: Tensor) -> Tensor:
        """Use `gated_norm_rows`."""
        if torch.is_grad_enabled():
            return super().gated_norm(norm, y, z)
        d_inner = y.shape[-1]
        out = torch.empty(y.shape, dtype=z.dtype)
        gate, stride = flat(z.flatten(0, -2))
        weight = numbers(norm.weight.float())
        epsilon = np.float32(norm.epsilon)
        values = numbers(y.reshape(-1, d_inner))
        written = numbers(out.view(-1, d_inner))
        fixed = (
            values,
            gate,
            stride,
            weight,
            norm.groups,
            epsilon,
            norm.norm_before_gate,
            written,
        )
        in_threads(
            gated_norm_rows,
            [(*fixed, *part) for part in parts(len(values), LEAST_ROWS)],
        )
        return out

    def norm(self, norm: RMSNorm, x: Tensor) -> Tensor:
        """Use `norm_rows`."""
        if torch.is_grad_enabled():
            return super().norm(norm, x)
        size = x.shape[-1]
        out = torch.empty(x.shape, dtype=norm.weight.dtype)
        values = numbers(x.reshape(-1, size))
        written = numbers(out.view(-1, size))
        fixed = (
            values,
            numbers(norm.weight.float()),
            np.float32(norm.epsilon),
            written,
        )
        in_threads(
            norm_rows, [(*fixed, *part) for part in parts(len(values), LEAST_ROWS)]
        )
        return out


load_kernels = NumbaKernels


def scan_rows(
    inputs: Sequence[Tensor],
    D: Tensor,
    dt: Tensor,
    decay: Tensor,
    state: Tensor,
    out: Tensor,
) -> None:
    """`scan_heads` for a batch of ``inputs`` x, B and C.

    ``state`` changes, ``out`` is written.
    """
    batch, _, heads, headdim = inputs[0].shape
    times = dt.contiguous().numpy()
    factors = decay.contiguous().numpy()
    skip = np.ascontiguousarray(
        np.broadcast_to(numbers(D).reshape(heads, -1), (heads, headdim))
    )
    results = (state.numpy(), numbers(out))
    tasks = []
    for row in range(batch):
        arrays, strides = zip(
            *(flat(part[row].flatten(1)) for part in inputs), strict=True
        )
        fixed = (*arrays, *strides, times[row], factors[row], skip, inputs[1].shape[2])
        tasks += [
            (*fixed, *(result[row] for result in results), *part)
            for part in parts(heads, 1)
        ]
    in_threads(scan_heads, tasks)


def decays(dt: Tensor, A: Tensor, sequence_index: Tensor | None) -> Tensor:
    """The share of the state that remains at each token: (batch, tokens, nheads).

    It is 0 where a sequence starts.
    """
    decay = torch.exp((dt * A).clamp(SMALLEST_LOG_DECAY, 0.0))
    if sequence_index is None:
        return decay
    before = F.pad(sequence_index[:, :-1], (1, 0))
    return decay.masked_fill((sequence_index != before)[..., None], 0.0)
