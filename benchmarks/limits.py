"""The rates of a machine, measured with one large product and one large copy, and the work of reading a document.

The limit is the longer of two times: all products of a reading at the rate of the large one, and its memory
traffic at the rate of the large copy. `docs/performance.md` has the formulas.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.clock import seconds_of

if TYPE_CHECKING:
    import torch

    from spscanner_rag.mamba2.config import Mamba2Config

_WIDTH = {"cuda": 8192, "cpu": 2048}  # rows and columns
_COPY_BYTES = {"cuda": 2**31, "cpu": 2**28}


class Work(NamedTuple):
    """The least work of reading a document, whatever program reads it."""

    projections: float  # operations of the projections of all layers, for every token
    products: float  # operations of all products: projections, convolution, state space
    moved_bytes: float


def work_of(config: Mamba2Config, tokens: int, units: int, itemsize: int, segment_tokens: int) -> Work:
    """The work of one document, with activations of ``itemsize`` bytes."""
    from spscanner_rag.lab.evaluation.flops import scan_flops

    flops = scan_flops(config, tokens, units)
    return Work(
        tokens * 2.0 * config.n_layer * config.d_model * (config.d_in_proj + config.d_inner),
        flops.projections + flops.convolution + flops.mixing,
        tokens * bytes_per_token(config, itemsize, segment_tokens),
    )


def bytes_per_token(config: Mamba2Config, itemsize: int, segment_tokens: int) -> float:
    """Memory traffic per token: activations, every step fused; a float32 residual; weights once per segment."""
    numbers = 4 * config.d_model + config.d_in_proj + 3 * config.conv_dim + config.nheads + 5 * config.d_inner
    weights = config.d_model * (config.d_in_proj + config.d_inner) / segment_tokens
    return config.n_layer * (8.0 * config.d_model + itemsize * (numbers + weights))


def product_rate(device: torch.device, dtype: torch.dtype) -> float:
    """Operations per second of a large matrix product; int8 products are summed in int32."""
    import torch

    width = _WIDTH[device.type]
    left, right = (torch.randn(width, width, device=device).to(dtype) for _ in range(2))
    multiply = torch._int_mm if dtype == torch.int8 else torch.matmul
    seconds = statistics.median(seconds_of(lambda: multiply(left, right), device) for _ in range(5))
    return 2.0 * width**3 / seconds


def copy_rate(device: torch.device) -> float:
    """Bytes per second of a large copy, read and written."""
    import torch

    source = torch.ones(_COPY_BYTES[device.type], dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    seconds = statistics.median(seconds_of(lambda: target.copy_(source), device) for _ in range(5))
    return 2.0 * source.numel() / seconds
