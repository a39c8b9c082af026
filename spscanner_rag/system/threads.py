"""How many threads compute: at most the physical cores that this process may use."""

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info, threadpool_limits

from spscanner_rag.system.forks import computes_alone
from spscanner_rag.system.torch_absence import torch_is_installed


def use_threads(threads: int | None = None, *, in_numpy: bool | None = None) -> int:
    """Set and return the number of threads of torch and numba in this process.

    With ``in_numpy``, by default where torch is not installed, they are numpy's. By
    default it is the library's number, at most `usable_cores`. A process that was
    forked after a model was loaded computes with one thread. A number below 1 is a
    ``ValueError``.
    """
    if threads is not None and (type(threads) is not int or threads < 1):
        raise ValueError(
            f"threads is {threads!r}; expected a whole number of at least 1"
        )
    if in_numpy is None:
        in_numpy = not torch_is_installed()
    threads_before = threads_in_use(in_numpy=in_numpy)
    if computes_alone():
        number = 1
    elif threads is None:
        number = min(threads_before, usable_cores())
    else:
        number = threads
    if number != threads_before:
        _set_threads(number, in_numpy)
    return number


def threads_in_use(*, in_numpy: bool) -> int:
    """Return the number of threads of torch, or of numpy."""
    if in_numpy:
        pools = [pool["num_threads"] for pool in _blas_pools()]
        return max(pools, default=1)
    import torch

    return torch.get_num_threads()


def _set_threads(number: int, in_numpy: bool) -> None:
    if in_numpy:
        threadpool_limits(limits=number, user_api="blas")
        return
    import torch

    torch.set_num_threads(number)


def _blas_pools() -> list[dict[str, Any]]:
    """The libraries for linear algebra that this process has loaded."""
    return [pool for pool in threadpool_info() if pool["user_api"] == "blas"]


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
