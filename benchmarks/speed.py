"""How fast each backend reads one document, and how near that is to the limit of the machine.

The limit is the longer of two times: the matrix products of the weights at the rate of one large product, and the
activations' way through memory at the rate of one large copy. Both rates are measured in the same run. Weights are
random; ours, transformers' and the published evaluation's model have the same shape.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.published_path import published_forward
from benchmarks.random_weights import SHAPES, write_random_weights

if TYPE_CHECKING:
    import torch

    from spscanner_rag.mamba2.config import Mamba2Config
    from spscanner_rag.mamba2.model import ScannerModel

KINDS = ("torch", "mamba-ssm", "transformers", "published")
TOKENS_PER_UNIT = 25
_PRODUCT = {"cuda": 8192, "cpu": 1024}  # rows and columns
_COPY_BYTES = {"cuda": 2**31, "cpu": 2**28}

Forward = Callable[["torch.Tensor"], object]


def add_commands(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
) -> list[argparse.ArgumentParser]:
    """Add `speed`."""
    command = commands.add_parser("speed", help="tokens per second and share of the limit, by backend")
    command.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    command.add_argument("--dtype", default="bfloat16", choices=["float32", "bfloat16"])
    command.add_argument("--sizes", nargs="+", choices=sorted(SHAPES), default=["default"])
    command.add_argument("--tokens", nargs="+", type=int, default=[1000, 10_000], help="document lengths")
    command.add_argument("--kinds", nargs="+", choices=KINDS, default=["torch", "transformers"])
    command.add_argument("--repeats", type=int, default=3, help="readings of each; the median counts")
    command.add_argument("--budget", type=float, default=math.inf, help="seconds after which no row is begun")
    command.set_defaults(measure=measure_speed)
    return [command]


def measure_speed(arguments: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """One row for every size, length and kind; nothing is required of them."""
    import torch

    torch.manual_seed(0)
    end = time.monotonic() + arguments.budget
    device, dtype = torch.device(arguments.device), getattr(torch, arguments.dtype)
    with torch.inference_mode():
        rates = _rates(device, dtype)
        rows: dict[str, object] = {
            "TFLOP/s of a large product": rates[0] / 1e12,
            "GB/s of a large copy": rates[1] / 1e9,
        }
        for size in arguments.sizes:
            for kind, config, forward in _forwards(size, arguments.kinds, device, dtype):
                for tokens in arguments.tokens:
                    name = f"{size}, {tokens:,} tokens, {kind}"
                    if isinstance(forward, str):
                        rows[name] = forward
                    elif time.monotonic() > end:
                        rows[name] = "not measured: no time left"
                    else:
                        rows[name] = _measured(forward, config, tokens, arguments.repeats, device, rates)
    return rows, True


def _forwards(
    size: str, kinds: list[str], device: torch.device, dtype: torch.dtype
) -> Iterator[tuple[str, Mamba2Config, Forward | str]]:
    """Each kind with the shape and how to read ids (tokens,), or why it cannot; one model at a time in memory."""
    from transformers import Mamba2Model

    from spscanner_rag.checkpoint import load_model
    from spscanner_rag.mamba2.backends import choose_backend

    with tempfile.TemporaryDirectory() as folder:
        write_random_weights(size, Path(folder))
        ours = load_model(Path(folder), device=device, dtype=dtype, require_head=False)
        for kind in kinds:
            forward: Forward | str
            if kind == "transformers":
                theirs = Mamba2Model.from_pretrained(folder, dtype=dtype).to(device).eval()
                forward = partial(_by_transformers, theirs)
            elif kind == "published":
                forward = published_forward(ours.config, device, dtype)
            else:
                try:
                    ours.use_kernels(choose_backend(kind, device).kernels)
                    forward = partial(_by_segments, ours)
                except (ImportError, ValueError) as error:
                    forward = f"not measured: {error}"
            yield kind, ours.config, forward


def _by_segments(model: ScannerModel, input_ids: torch.Tensor) -> object:
    """As `Scanner` reads, with a logit for every unit."""
    import numpy as np

    from spscanner_rag.mamba2.reader import TokenSequence, read_logits
    from spscanner_rag.scanner import SEGMENT_TOKENS

    ends = np.arange(TOKENS_PER_UNIT - 1, len(input_ids), TOKENS_PER_UNIT)
    sequence = TokenSequence(input_ids.numpy().astype(np.int32), ends)
    return read_logits(model, [sequence], SEGMENT_TOKENS[model.device.type])


def _by_transformers(model: Callable[..., tuple[torch.Tensor, ...]], input_ids: torch.Tensor) -> object:
    return model(input_ids[None].to(model.device), use_cache=False)[0].sum().item()  # type: ignore[attr-defined]


def _measured(
    forward: Forward,
    config: Mamba2Config,
    tokens: int,
    repeats: int,
    device: torch.device,
    rates: tuple[float, float],
) -> dict[str, float] | str:
    """Median seconds, tokens per second, share of the limit; on CUDA also the peak of allocated memory."""
    import torch

    input_ids = torch.randint(config.vocab_size, (tokens,))
    on_cuda = device.type == "cuda"
    taken = []
    try:
        forward(input_ids)  # compiles, tunes, fills caches
        if on_cuda:
            torch.cuda.reset_peak_memory_stats()
        for _ in range(repeats):
            taken.append(_seconds(partial(forward, input_ids), device))
    except torch.OutOfMemoryError:
        return "out of memory"
    seconds = statistics.median(taken)
    limit = tokens * max(_flops(config) / rates[0], _bytes(config, rates) / rates[1])
    row = {"ms": 1e3 * seconds, "tokens/s": tokens / seconds, "share of the limit": limit / seconds}
    return row | ({"peak MB": torch.cuda.max_memory_allocated() / 1e6} if on_cuda else {})


def _flops(config: Mamba2Config) -> float:
    """Of the projections, for one token."""
    return 2.0 * config.n_layer * config.d_model * (config.d_in_proj + config.d_inner)


def _bytes(config: Mamba2Config, rates: tuple[float, ...]) -> float:
    """Activations read and written for one token, in bfloat16 with a float32 residual, each step fused."""
    numbers = 4 * config.d_model + config.d_in_proj + 3 * config.conv_dim + config.nheads + 5 * config.d_inner
    return float(config.n_layer * (8 * config.d_model + 2 * numbers))


def _rates(device: torch.device, dtype: torch.dtype) -> tuple[float, float]:
    """Operations per second of a large matrix product, bytes per second of a large copy (read and written)."""
    import torch

    width = _PRODUCT[device.type]
    left, right = (torch.randn(width, width, device=device).to(dtype) for _ in range(2))
    source = torch.ones(_COPY_BYTES[device.type], dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    product = statistics.median(_seconds(lambda: left @ right, device) for _ in range(5))
    copy = statistics.median(_seconds(lambda: target.copy_(source), device) for _ in range(5))
    return 2.0 * width**3 / product, 2.0 * source.numel() / copy


def _seconds(run: Callable[[], object], device: torch.device) -> float:
    import torch

    synchronize = torch.cuda.synchronize if device.type == "cuda" else torch.cpu.synchronize
    synchronize()
    start = time.perf_counter()
    run()
    synchronize()
    return time.perf_counter() - start
