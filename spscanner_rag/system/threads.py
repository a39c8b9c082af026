"""How many threads compute: at most the physical cores that this process may use."""

import math
import os
from collections.abc import Iterator
from pathlib import Path

from spscanner_rag.system.forks import computes_alone


def use_threads(threads: int | None = None) -> int:
    """Set and return the number of threads of torch and numba in this process.

    By default it is torch's number, at most `usable_cores`. A process that was forked
    after a model was loaded computes with one thread. A number below 1 is a
    ``ValueError``.
    """
    if threads is not None and (type(threads) is not int or threads < 1):
        raise ValueError(
            f"threads is {threads!r}; expected a whole number of at least 1"
        )
    import torch

    threads_before = torch.get_num_threads()
    if computes_alone():
        number = 1
    elif threads is None:
        number = min(threads_before, usable_cores())
    else:
        number = threads
    if number != threads_before:
        torch.set_num_threads(number)
    return number


def usable_cores(root: Path = Path("/")) -> int:
    """Number of physical cores that this process may use, at least 1.

    The limits are its affinity and, on Linux, the time that its control groups allow,
    rounded up. Of control groups of version 1, only the group counts that a container
    sees as its own. ``root`` is the folder of the system's files.
    """
    limits = [_physical_cores(root)]
    for quota in map(_quota, _time_limits(root)):
        if quota > 0:
            limits.append(math.ceil(quota))
    return max(1, min(limits))


def _physical_cores(root: Path) -> int:
    """Number of physical cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        processors = sorted(os.sched_getaffinity(0))
    else:
        processors = list(range(os.cpu_count() or 1))
    # Logical processors of one core have the same content in this file. Without the
    # file, all are counted.
    siblings = "sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
    cores = set()
    for processor in processors:
        cores.add(_content(root / siblings.format(processor)) or str(processor))
    return len(cores)


def _time_limits(root: Path) -> Iterator[str]:
    """The limits of this process's control groups: processor time and its period."""
    groups = root / "sys/fs/cgroup"
    version_1 = groups / "cpu"
    quota = _content(version_1 / "cpu.cfs_quota_us")
    period = _content(version_1 / "cpu.cfs_period_us")
    yield f"{quota} {period}"
    group = _group_of_process(_content(root / "proc/self/cgroup"))
    # A container may have only the innermost of these folders.
    for folder in (group, *group.parents):
        yield _content(groups / folder / "cpu.max")


def _group_of_process(listed: str) -> Path:
    """The folder of a process's control group, from its file ``cgroup``."""
    for line in listed.splitlines():
        if line.startswith("0::"):
            return Path(line[3:].strip("/"))
    return Path()


def _quota(limit: str) -> float:
    """Processor time per unit of time, or 0 if there is no limit."""
    try:
        quota, period = map(int, limit.split())
        return quota / period
    except (ValueError, ZeroDivisionError):
        return 0.0


def _content(path: Path) -> str:
    """A small file's text, or nothing if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""
