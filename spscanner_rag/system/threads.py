"""How many threads compute: at most the physical cores that this process may use."""

import math
import os
from collections.abc import Iterator
from pathlib import Path

from spscanner_rag.system.forks import computes_alone


def use_threads(threads: int | None = None) -> int:
    """Set and return the threads of torch and numba in this process.

    Default: torch's, at most `usable_cores`.

    A process that was forked after a model was loaded computes with one thread. Below 1
    is a ``ValueError``.
    """
    if threads is not None and (type(threads) is not int or threads < 1):
        raise ValueError(
            f"threads is {threads!r}; expected a whole number of at least 1"
        )
    import torch

    set_before = torch.get_num_threads()
    asked = min(set_before, usable_cores()) if threads is None else threads
    number = 1 if computes_alone() else asked
    if number != set_before:
        torch.set_num_threads(number)
    return number


def usable_cores(root: Path = Path("/")) -> int:
    """Number of physical cores that this process may use, at least 1.

    ``root`` has the system's files.

    The limits are its affinity and, on Linux, the time that its control groups allow,
    rounded up; of version 1 only the group that a container sees as its own.
    """
    cpus = (
        os.sched_getaffinity(0)
        if hasattr(os, "sched_getaffinity")
        else range(os.cpu_count() or 1)
    )
    # logical processors of one core have the same content in this file; without the
    # file, all are counted
    siblings = "sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
    cores = len({_content(root / siblings.format(cpu)) or str(cpu) for cpu in cpus})
    quotas = [quota for quota in map(_quota, _limits(root)) if quota > 0]
    return max(1, min([cores, *map(math.ceil, quotas)]))


def _limits(root: Path) -> Iterator[str]:
    """The limits of this process's control groups: processor time and its period."""
    groups = root / "sys/fs/cgroup"
    yield " ".join(
        _content(groups / "cpu" / f"cpu.cfs_{name}_us") for name in ("quota", "period")
    )
    lines = _content(root / "proc/self/cgroup").splitlines()
    own = Path(
        next((line[3:] for line in lines if line.startswith("0::")), "").strip("/")
    )
    for part in (own, *own.parents):  # a container may have only the innermost
        yield _content(groups / part / "cpu.max")


def _quota(limit: str) -> float:
    """Processor time per unit of time; 0 if there is no limit."""
    try:
        quota, period = map(int, limit.split())
        return quota / period
    except (ValueError, ZeroDivisionError):
        return 0.0


def _content(path: Path) -> str:
    """A small file's text; empty if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""
