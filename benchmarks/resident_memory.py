"""Memory of this process as the operating system counts it."""

import sys
from pathlib import Path


def peak_bytes() -> int:
    """Peak resident memory of this process so far."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    # On Linux, ru_maxrss includes the process before its exec, a copy of the parent; VmHWM does not.
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def allow_no_more_than_is_free() -> None:
    """On Linux, let an allocation fail when memory runs out, instead of the system killing some process."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return
    import resource

    free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    resource.setrlimit(resource.RLIMIT_AS, (free, resource.getrlimit(resource.RLIMIT_AS)[1]))
