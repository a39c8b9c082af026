"""With how many threads a process computes: no more than the processor cores that it may use."""

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import torch

from spscanner_rag.mamba2.forks import computes_alone

_CGROUPS: Final = Path("sys/fs/cgroup")
_SIBLINGS: Final = "sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


def use_threads(threads: int | None = None) -> int:
    """Set the number of threads with which torch and the kernels of numba compute, and return it.

    It is torch's own setting, so it is the process's and not a model's; a thread of Python that has computed
    before keeps its number. A process that was forked after a model was loaded always computes with one thread
    (`spscanner_rag.mamba2.forks`).

    Parameters
    ----------
    threads : int, optional
        Default: as torch is set (``OMP_NUM_THREADS``, ``torch.set_num_threads``), at most `usable_cores`.

    Raises
    ------
    ValueError
        Unless ``threads`` is a whole number of at least 1.
    """
    if threads is not None and (type(threads) is not int or threads < 1):
        raise ValueError(f"threads is {threads!r}; expected a whole number of at least 1")
    set_before = torch.get_num_threads()
    asked = min(set_before, usable_cores()) if threads is None else threads
    number = 1 if computes_alone() else asked
    if number != set_before:
        torch.set_num_threads(number)
    return number


def usable_cores(root: Path = Path("/")) -> int:
    """The physical cores that this process may use, at least 1.

    Its affinity counts, and on Linux the processor time that its control groups (cgroup v1 and v2) allow: with 1.5
    cores' time, two threads compute more than one does. Two hardware threads of one core count once, since
    matrix products fill a core with one. ``root`` is where the files of the system are.
    """
    cores = len({_siblings(root, cpu) for cpu in _allowed_cpus()})
    quotas = [quota for quota in _quotas(root) if quota > 0]
    return max(1, min([cores, *map(math.ceil, quotas)]))


def _allowed_cpus() -> set[int]:
    """The logical processors of the affinity, or all where the system has none."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def _siblings(root: Path, cpu: int) -> str:
    """What is the same for all logical processors of one core; where the system does not tell, the number."""
    return _content(root / _SIBLINGS.format(cpu)) or str(cpu)


def _quotas(root: Path) -> Iterator[float]:
    """The limits of all control groups that this process is in, in cores."""
    for line in _content(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2) if line.count(":") >= 2 else ("", "", "")
        if line.startswith("0::"):  # version 2; beside version 1 it is mounted in a folder of its own
            for folder in _folders(root / _CGROUPS, path) + _folders(root / _CGROUPS / "unified", path):
                yield _share(*(_content(folder / "cpu.max").split() or ["max", "1"]))
        elif "cpu" in controllers.split(","):
            for folder in _folders(root / _CGROUPS / controllers, path) + _folders(
                root / _CGROUPS / "cpu", path
            ):
                quota, period = _content(folder / "cpu.cfs_quota_us"), _content(folder / "cpu.cfs_period_us")
                yield _share(quota, period)


def _folders(mounted: Path, path: str) -> list[Path]:
    """A group's folder and those of the groups around it. In a container only the innermost may be there."""
    folders = [mounted]
    for part in path.strip("/").split("/"):
        folders.append(folders[-1] / part)
    return folders


def _share(quota: str = "", period: str = "", *_: str) -> float:
    """Processor time for each unit of time; 0 where there is no limit or it cannot be read."""
    try:
        return max(0.0, int(quota) / int(period))
    except (ValueError, ZeroDivisionError):
        return 0.0


def _content(path: Path) -> str:
    """A small file's text; empty if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""
