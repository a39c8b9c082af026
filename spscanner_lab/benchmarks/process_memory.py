"""The memory of this process: its peak so far, and a limit to what is free."""

import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")
_SYSTEM = Path("/proc/meminfo")


def peak_bytes() -> int:
    """Peak resident memory of this process so far."""
    try:
        status = _STATUS.read_text(encoding="ascii")
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    # On Linux, ru_maxrss includes the parent's copy from before exec; VmHWM does not.
    return _bytes_of(status, "VmHWM:")


def allow_no_more_than_is_free() -> None:
    """On Linux, let allocations fail when memory runs out.

    Else the system would kill a process.
    """
    try:
        system = _SYSTEM.read_text(encoding="ascii")
    except OSError:
        return
    import resource

    free = _bytes_of(system, "MemAvailable:")
    _, hard_limit = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (free, hard_limit))


def _bytes_of(lines: str, name: str) -> int:
    """The value of a line such as "VmHWM: 12 kB"."""
    line = next(line for line in lines.splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024
