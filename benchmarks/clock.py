"""Times calls in turn, until the measurement has taken long enough."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

Row = dict[str, float] | str
"""A row of a report: numbers by column, or the reason why there are none."""

LONG_ENOUGH = 90.0
"""Seconds of measuring after which no call is repeated."""


def too_long(seconds: float) -> str:
    """The row of a call that is expected to take longer than allowed."""
    return f"not measured: would take about {seconds:,.0f} s"


def seconds_of(run: Callable[[], object], device: torch.device) -> float:
    """Seconds until a call has returned and the device has finished."""
    import torch

    synchronize = torch.cuda.synchronize if device.type == "cuda" else torch.cpu.synchronize
    synchronize()
    start = time.perf_counter()
    run()
    synchronize()
    return time.perf_counter() - start


def median_seconds(
    runs: Mapping[str, Callable[[], object]],
    repeats: int,
    device: torch.device,
    long_enough: float = LONG_ENOUGH,
) -> dict[str, float]:
    """Median seconds of each call; calls alternate, so that a busy moment of the machine affects all alike."""
    taken: dict[str, list[float]] = {name: [] for name in runs}
    end = time.monotonic() + long_enough
    for _ in range(repeats):
        for name, run in runs.items():
            taken[name].append(seconds_of(run, device))
        if time.monotonic() > end:
            break
    return {name: statistics.median(seconds) for name, seconds in taken.items() if seconds}
