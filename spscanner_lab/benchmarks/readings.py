"""The speed of programs that read documents of several lengths."""

from __future__ import annotations

import argparse
import math
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from spscanner_lab.benchmarks.machine_limits import copy_rate, least_work, product_rate
from spscanner_lab.benchmarks.reading_programs import (
    Forward,
    NotMeasuredError,
    forward_of,
)
from spscanner_lab.benchmarks.report import Row, median_seconds, seconds_of, too_long

if TYPE_CHECKING:
    import torch

    from spscanner_rag.mamba2.config import Mamba2Config

# tokens; on CUDA all, to tune kernels and take memory once
_WARM_UP = {"cuda": 10**9, "cpu": 1024}
_NO_MEMORY = "out of memory"


def reading_rows(
    kind: str,
    folder: Path,
    device: torch.device,
    dtype: str,
    options: argparse.Namespace,
) -> dict[str, Row]:
    """Rows of one program for each length of a document, from the shortest on."""
    import torch

    from spscanner_rag.checkpoint.bounded_files import read_json
    from spscanner_rag.checkpoint.config import read_config

    config = read_config(read_json(folder / "config.json"))
    rows: dict[str, Row] = {}
    reason = ""
    rate = math.inf
    with torch.inference_mode():
        try:
            forward = forward_of(kind, folder, device, getattr(torch, dtype))
        except NotMeasuredError as error:
            reason = f"not measured: {error}"
        for tokens in sorted(options.tokens):
            reason = reason or _reason_to_stop(tokens, rate, options)
            row: Row = reason
            if not reason:
                reading = _Reading(forward, config, device, getattr(torch, dtype))
                try:
                    row = reading.row(tokens, options)
                except NotMeasuredError as error:
                    row = reason = f"not measured: {error}"
            rows[f"{dtype}, {kind}, {tokens:,} tokens"] = row
            if isinstance(row, dict):
                rate = row["tokens/s"]
            elif row == _NO_MEMORY:
                reason = _NO_MEMORY
    return rows


def _reason_to_stop(tokens: int, rate: float, options: argparse.Namespace) -> str:
    """Why a length is not measured, from the time left and the speed so far."""
    if time.monotonic() > options.end:
        return "not measured: no time left"
    if tokens / rate > options.longest:
        return too_long(tokens / rate)
    return ""


class _Reading:
    """A program and the model that it reads with."""

    def __init__(
        self,
        forward: Forward,
        config: Mamba2Config,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self.forward = forward
        self.config = config
        self.device = device
        self.dtype = dtype

    def row(self, tokens: int, options: argparse.Namespace) -> Row:
        """Median time, tokens per second and shares of the machine's limit.

        On CUDA also the peak allocated memory.
        """
        import torch

        input_ids = torch.randint(self.config.vocab_size, (tokens,))
        rate_before = product_rate(self.device, self.dtype)
        copied = copy_rate(self.device)
        try:
            seconds = self._seconds(input_ids, options)
        except (RuntimeError, MemoryError) as error:
            if isinstance(error, MemoryError) or "memory" in str(error):
                return _NO_MEMORY
            raise
        if isinstance(seconds, str):
            return seconds
        # it changes when others use the machine
        rate = (rate_before + product_rate(self.device, self.dtype)) / 2
        work = least_work(self.config, tokens, self.dtype, self.device.type)
        shortest = max(work.products / rate, work.moved / copied)
        row = {
            "ms": 1e3 * seconds,
            "tokens/s": tokens / seconds,
            "share of the limit": shortest / seconds,
            "share, projections only": work.projections / rate / seconds,
            "product GFLOP/s": rate / 1e9,
        }
        if self.device.type == "cuda":
            row["peak MB"] = torch.cuda.max_memory_allocated() / 1e6
        return row

    def _seconds(
        self, input_ids: torch.Tensor, options: argparse.Namespace
    ) -> float | str:
        """Median seconds, or why they are not measured."""
        import torch

        warm_up = input_ids[: _WARM_UP[self.device.type]]
        of_warm_up = seconds_of(partial(self.forward, warm_up), self.device)
        expected = of_warm_up * len(input_ids) / len(warm_up)
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        elif expected > options.longest:
            return too_long(expected)
        runs = {"": partial(self.forward, input_ids)}
        return median_seconds(runs, options.repeats, self.device)[""]
