"""Call compiled functions with tensors: their memory as arrays, and the work in as many threads as torch uses.

These are threads of Python: some of numba's own pools cannot be entered by two threads at once, and some do not
survive a fork.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

LEAST_ROWS = 64
"""Tokens that are worth a thread of their own."""


def numbers(tensor: Tensor) -> NDArray[Any]:
    """A tensor's memory as float32, or as bfloat16 in uint16."""
    tensor = tensor.detach()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(np.uint16)
    return tensor.float().numpy()


def flat(rows: Tensor) -> tuple[NDArray[Any], int]:
    """The memory from the first number of (rows, width) to the last, and the distance between rows."""
    if rows.stride(-1) != 1:
        rows = rows.contiguous()
    count, width = rows.shape
    stride = rows.stride(0)
    size = (count - 1) * stride + width if count else 0
    return numbers(rows.as_strided((size,), (1,))), stride


def parts(rows: int, least: int) -> list[tuple[int, int]]:
    """First and last row of each thread's part, which has at least ``least`` rows."""
    count = max(1, min(torch.get_num_threads(), rows // least))
    bounds = np.linspace(0, rows, count + 1).astype(int).tolist()
    return list(pairwise(bounds))


def in_threads(function: Callable[..., None], tasks: Sequence[tuple[Any, ...]]) -> None:
    """Call a compiled function, which holds no lock of Python's, with each of the arguments."""
    threads = min(torch.get_num_threads(), len(tasks))
    own = tasks[::threads] if threads else tasks

    def run(share: Sequence[tuple[Any, ...]]) -> None:
        for arguments in share:
            function(*arguments)

    others = [_pool(os.getpid()).submit(run, tasks[first::threads]) for first in range(1, threads)]
    run(own)
    for other in others:
        other.result()


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """The threads beside the caller's. A forked child has none of its parent's, so it makes its own."""
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="spscanner")
