"""What a machine can do at best, and the least work that reading a document takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from spscanner_lab.benchmarks.report import median_seconds
from spscanner_lab.evaluation.operations import scan_products

if TYPE_CHECKING:
    import torch

    from spscanner_rag.mamba2.config import Mamba2Config

TOKENS_PER_UNIT = 25

_WIDTH = {"cuda": 8192, "cpu": 2048}  # rows and columns of the large product
_COPY_BYTES = {"cuda": 2**31, "cpu": 2**28}


class LeastWork(NamedTuple):
    """Operations of the projections and of all products, and bytes moved."""

    projections: float
    products: float
    moved: float


def least_work(
    config: Mamba2Config, tokens: int, dtype: torch.dtype, device: str
) -> LeastWork:
    """The work that any program needs for a document.

    Memory traffic: activations with every step fused, a float32 residual, weights once
    per segment. The machine's limit is the longer of two times: all products at the
    rate of a large product, all traffic at that of a large copy.
    """
    from spscanner_rag.scan.segment_tokens import default_segment_tokens

    segment_tokens = min(tokens, default_segment_tokens(device, config))
    products = scan_products(config, tokens, tokens // TOKENS_PER_UNIT)
    matrices = config.d_model * (config.d_in_proj + config.d_inner)
    numbers = 4 * config.d_model + config.d_in_proj + 3 * config.conv_dim
    numbers += config.nheads + 5 * config.d_inner
    numbers_of_dtype = numbers + matrices / segment_tokens
    moved = 8.0 * config.d_model + dtype.itemsize * numbers_of_dtype
    projections = 2.0 * tokens * config.n_layer * matrices
    return LeastWork(projections, products, tokens * config.n_layer * moved)


def product_rate(device: torch.device, dtype: torch.dtype) -> float:
    """Operations per second of a large matrix product."""
    import torch

    width = _WIDTH[device.type]
    left = torch.randn(width, width, device=device).to(dtype)
    right = torch.randn(width, width, device=device).to(dtype)
    seconds = median_seconds({"": lambda: left @ right}, 5, device)[""]
    return 2.0 * width**3 / seconds


def copy_rate(device: torch.device) -> float:
    """Bytes per second, read and written, of a large copy."""
    import torch

    source = torch.ones(_COPY_BYTES[device.type], dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    seconds = median_seconds({"": lambda: target.copy_(source)}, 5, device)[""]
    return 2.0 * source.numel() / seconds
