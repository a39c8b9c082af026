"""Where the time of a reading goes, by kind of operation, measured with torch's profiler.

On a CPU these are torch's operations, on CUDA the kernels. The profiler itself takes time, mostly at small
operations: the shares are of the time that it recorded.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.random_weights import SHAPES, write_random_weights
from benchmarks.reading_kinds import OURS, forward_of

if TYPE_CHECKING:
    import torch

# The first pattern that matches the name of an operation or kernel determines its kind.
_PATTERNS = {
    "state space, products": r"aten::(bmm|baddbmm)|_chunk_(scan|state)_fwd|_bmm_chunk|_state_passing",
    "convolution": r"conv",
    "projections": r"aten::(mm|addmm)$|linear|gemm|gemv|nvjet|cutlass|xmma|splitk",
    "norms": r"norm|rsqrt|aten::(mean|pow|sum)$",
    "exponentials, activations, cumulative sums": r"exp(_|$)|silu|sigmoid|softplus|cumsum|clamp|scan",
    "copies": r"copy|clone|cat$|_cat|pad|fill|zero|index|embedding|gather|contiguous|[Mm]em(cpy|set)|tril",
    "multiplications, additions": r"(::|_)(mul|add|addcmul|sub|div|neg)|elementwise",
}
OTHER = "views, calls and the rest"


def add_commands(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
) -> list[argparse.ArgumentParser]:
    """Add `profile`."""
    command = commands.add_parser("profile", help="where the time of reading goes, by kind of operation")
    command.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    command.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    command.add_argument("--sizes", nargs="+", choices=sorted(SHAPES), default=["default", "130m"])
    command.add_argument("--kind", choices=OURS, default="torch", help="our backend")
    command.add_argument("--tokens", type=int, default=4096, help="length of the document")
    command.set_defaults(measure=measure_profile)
    return [command]


def measure_profile(arguments: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """Milliseconds and share of every kind of operation, for every size; there are no bounds."""
    import torch

    rows: dict[str, object] = {}
    device, dtype = torch.device(arguments.device), getattr(torch, arguments.dtype)
    for size in arguments.sizes:
        torch.manual_seed(0)
        with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
            times = _times(size, arguments.kind, Path(folder), device, dtype, arguments.tokens)
        total = sum(times.values())
        for kind, seconds in sorted(times.items(), key=lambda item: -item[1]):
            rows[f"{size}, {kind}"] = {"ms": 1e3 * seconds, "share": seconds / total}
        rows[f"{size}, all of {arguments.tokens:,} tokens"] = {"ms": 1e3 * total, "share": 1.0}
    return rows, True


def kind_of(operation: str) -> str:
    """The kind of an operation of torch, or of a kernel."""
    return next((kind for kind, pattern in _PATTERNS.items() if re.search(pattern, operation)), OTHER)


def _times(
    size: str, kind: str, folder: Path, device: torch.device, dtype: torch.dtype, tokens: int
) -> dict[str, float]:
    """Seconds of one reading by kind of operation, after a reading that warms up."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    from spscanner_rag.checkpoint.config import read_config
    from spscanner_rag.checkpoint.file_access import read_json

    write_random_weights(size, folder)
    config = read_config(read_json(folder / "config.json"))
    forward = forward_of(kind, folder, config, device, dtype)
    input_ids = torch.randint(config.vocab_size, (tokens,))
    forward(input_ids)
    on_cuda = device.type == "cuda"
    with profile(activities=[ProfilerActivity.CUDA if on_cuda else ProfilerActivity.CPU]) as profiler:
        forward(input_ids)
    times: dict[str, float] = {}
    for event in profiler.key_averages():
        taken = event.self_device_time_total if on_cuda else event.self_cpu_time_total
        times[kind_of(event.key)] = times.get(kind_of(event.key), 0.0) + taken / 1e6
    return times
