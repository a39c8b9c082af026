"""Calls timed in turn, a description of the machine, and the printed table."""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import statistics
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import torch

PACKAGES = ("spscanner-rag", "torch", "transformers", "tokenizers", "numpy")

# the type that `add_subparsers` returns has no public name
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001

Row = dict[str, float] | str
"""A row of a report: numbers by column, or the reason why there are none."""

LONG_ENOUGH = 90.0  # seconds of measuring after which calls are no longer repeated


def too_long(seconds: float) -> str:
    """The row for a call that is expected to take longer than allowed."""
    return f"not measured: would take about {seconds:,.0f} s"


def seconds_of(run: Callable[[], object], device: torch.device) -> float:
    """Seconds until a call has returned and the device has finished."""
    import torch

    on_gpu = device.type == "cuda"
    synchronize = torch.cuda.synchronize if on_gpu else torch.cpu.synchronize
    synchronize()
    start = time.perf_counter()
    run()
    synchronize()
    return time.perf_counter() - start


def median_seconds(
    runs: Mapping[str, Callable[[], object]], repeats: int, device: torch.device
) -> dict[str, float]:
    """Median seconds of each call.

    Calls alternate, so that a busy moment of the machine affects all equally.
    """
    durations: dict[str, list[float]] = {name: [] for name in runs}
    end = time.monotonic() + LONG_ENOUGH
    for _ in range(repeats):
        for name, run in runs.items():
            durations[name].append(seconds_of(run, device))
        if time.monotonic() > end:
            break
    medians = {}
    for name, seconds in durations.items():
        if seconds:
            medians[name] = statistics.median(seconds)
    return medians


def describe_run(arguments: list[str]) -> dict[str, object]:
    """Command, date, machine and versions of this run, without a name or a path."""
    # Imported after the measurement: this must not load torch into a process that
    # measures memory.
    import torch

    from spscanner_lab.evaluation.machine import processor_name

    accelerator = "no accelerator"
    if torch.cuda.is_available():
        accelerator = torch.cuda.get_device_name()
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        versions[name] = _version(name)
    return {
        "command": shlex.join(["python", "-m", "spscanner_lab.benchmarks", *arguments]),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": {
            "processor": processor_name(),
            "cores": _cores(),
            "memory_gib": _memory_gib(),
            "system": f"{platform.system()} {platform.machine()}",
            "accelerator": accelerator,
        },
        "versions": versions,
    }


def _cores() -> int | None:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _memory_gib() -> float | None:
    if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", {}):
        return None
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)


def print_report(report: Mapping[str, object]) -> None:
    """Print command, machine, versions and results.

    Consecutive rows with the same columns share a header.
    """
    machine = report["machine"]
    versions = report["versions"]
    results = report["results"]
    assert isinstance(machine, dict)
    assert isinstance(versions, dict)
    assert isinstance(results, dict)
    print(report["command"])
    print(
        f"{report['date']}  {machine['processor']}, {machine['cores']} cores,"
        f" {machine['accelerator']}"
    )
    print("  ".join(f"{name} {version}" for name, version in versions.items()))
    _print_rows(results)
    print("within bounds" if report["ok"] else "OUT OF BOUNDS")


def _print_rows(rows: Mapping[str, object]) -> None:
    width = max(len(name) for name in rows)
    head: list[str] = []
    for name, row in rows.items():
        if not isinstance(row, dict):
            print(f"{name:<{width}}  {_number(row)}")
            continue
        if list(row) != head:
            head = list(row)
            print(f"{'':<{width}}  " + "  ".join(f"{column:>10}" for column in head))
        cells = []
        for column, cell in row.items():
            cells.append(f"{_number(cell):>{max(10, len(column))}}")
        print(f"{name:<{width}}  " + "  ".join(cells))


def _number(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.4g}"
