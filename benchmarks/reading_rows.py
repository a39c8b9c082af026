"""Speed and memory of one kind of program over documents of growing length.

On a CPU it runs in a process of its own, and the peak is that of the process's resident memory, loading included.
On CUDA the peak is that of memory allocated on the device.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.clock import Row, median_seconds, seconds_of, too_long
from benchmarks.limits import product_rate, work_of
from benchmarks.published_path import NotMeasuredError
from benchmarks.reading_kinds import COMPILED, TOKENS_PER_UNIT, Forward, forward_of
from benchmarks.resident_memory import allow_no_more_than_is_free, peak_bytes

if TYPE_CHECKING:
    from spscanner_rag.mamba2.config import Mamba2Config

_WARM_UP = {
    "cuda": 10**9,
    "cpu": 1024,
}  # tokens; on CUDA all, because kernels are tuned and memory taken once
_NO_MEMORY = "out of memory"


class Reading(NamedTuple):
    """What is measured, and for how long."""

    kind: str
    folder: str  # with the weights
    device: str
    dtype: str
    tokens: list[int]
    repeats: int
    longest: float  # seconds that one reading may take
    seconds_left: float  # no reading begins after that
    copy_rate: float


def reading_rows(reading: Reading) -> Iterator[tuple[int, Row]]:
    """Number of tokens and row, from the shortest document to the longest."""
    lengths = sorted(reading.tokens)
    rows = _rows(reading) if reading.device == "cuda" else _rows_in_process(reading)
    for tokens, row in rows:
        lengths.remove(tokens)
        yield tokens, row
    yield from ((tokens, "not measured: the process that measured it ended early") for tokens in lengths)


def _rows_in_process(reading: Reading) -> Iterator[tuple[int, Row]]:
    command = [sys.executable, "-m", "benchmarks.reading_rows", json.dumps(reading._asdict())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            tokens, row = json.loads(line)
            yield tokens, row


def _rows(reading: Reading) -> Iterator[tuple[int, Row]]:
    import torch

    from spscanner_rag.checkpoint.config import read_config
    from spscanner_rag.checkpoint.file_access import read_json

    end = time.monotonic() + reading.seconds_left
    device, dtype = torch.device(reading.device), getattr(torch, reading.dtype)
    config = read_config(read_json(Path(reading.folder) / "config.json"))
    reason, rate = "", 0.0
    with torch.inference_mode():
        try:
            forward = forward_of(reading.kind, Path(reading.folder), config, device, dtype)
        except NotMeasuredError as error:
            reason = f"not measured: {error}"
        for tokens in sorted(reading.tokens):
            if not reason and time.monotonic() > end:
                reason = "not measured: no time left"
            if not reason and rate and tokens / rate > reading.longest:
                reason = too_long(tokens / rate)
            row = reason or _row(forward, config, tokens, reading)
            yield tokens, row
            if isinstance(row, dict):
                rate = row["tokens/s"]
            reason = reason or (_NO_MEMORY if row == _NO_MEMORY else "")


def _row(forward: Forward, config: Mamba2Config, tokens: int, reading: Reading) -> Row:
    """Median seconds, tokens per second, shares of the machine's limit, peak memory, seconds of the first pass."""
    import torch

    device, dtype = torch.device(reading.device), getattr(torch, reading.dtype)
    input_ids = torch.randint(config.vocab_size, (tokens,))
    before = product_rate(device, dtype)
    try:
        warm_up = input_ids[: tokens if reading.kind == COMPILED else _WARM_UP[device.type]]
        taken = seconds_of(partial(forward, warm_up), device)
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        elif reading.kind != COMPILED and taken * tokens / len(warm_up) > reading.longest:
            return too_long(taken * tokens / len(warm_up))
        seconds = median_seconds({"": partial(forward, input_ids)}, reading.repeats, device)[""]
    except NotMeasuredError as error:
        return f"not measured: {error}"
    except (RuntimeError, MemoryError) as error:
        if isinstance(error, MemoryError) or "memory" in str(error):
            return _NO_MEMORY
        raise
    peak = torch.cuda.max_memory_allocated() if device.type == "cuda" else peak_bytes()
    rate = (before + product_rate(device, dtype)) / 2  # it changes while others use the machine, too
    row = _shares(config, tokens, seconds, rate, reading)
    return row | {"peak MB": peak / 1e6, "s of the first pass": taken}


def _shares(
    config: Mamba2Config, tokens: int, seconds: float, rate: float, reading: Reading
) -> dict[str, float]:
    import torch

    from spscanner_rag.scan.devices import default_segment_tokens

    dtype = getattr(torch, reading.dtype)
    between_products = dtype if dtype.is_floating_point else torch.float32
    segment_tokens = min(tokens, default_segment_tokens(reading.device, config))
    work = work_of(config, tokens, tokens // TOKENS_PER_UNIT, between_products.itemsize, segment_tokens)
    return {
        "ms": 1e3 * seconds,
        "tokens/s": tokens / seconds,
        "share of the limit": max(work.products / rate, work.moved_bytes / reading.copy_rate) / seconds,
        "share, projections only": work.projections / rate / seconds,
        "product GFLOP/s": rate / 1e9,
    }


if __name__ == "__main__":
    allow_no_more_than_is_free()
    for _row_of_one in _rows(Reading(**json.loads(sys.argv[1]))):
        print(json.dumps(_row_of_one), flush=True)
