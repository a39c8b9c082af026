"""Describes a run: command, kind of machine, versions, date."""

import os
import platform
import shlex
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

from spscanner_rag.scan.devices import processor_name

PACKAGES = ("spscanner-rag", "torch", "transformers", "tokenizers", "numpy")


def describe_run(arguments: list[str]) -> dict[str, object]:
    """Command, date, machine and versions of this run; no host name and no path."""
    return {
        "command": shlex.join(["python", "-m", "benchmarks", *arguments]),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": {
            "processor": processor_name(),
            "cores": _usable_cores(),
            "memory_gib": _memory_gib(),
            "system": f"{platform.system()} {platform.machine()}",
            "accelerator": _accelerator(),
        },
        "versions": {"python": platform.python_version(), **_versions()},
    }


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _memory_gib() -> float | None:
    if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", {}):
        return None
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)


def _accelerator() -> str:
    # Imported after the measurement: a process that measures memory must not load torch because of this.
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "no accelerator"
