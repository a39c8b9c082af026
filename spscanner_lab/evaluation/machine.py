"""The machine of a run: the peak memory of the process and the processor's name."""

import platform
import re
from pathlib import Path

_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)


class PeakMemory:
    """Measures the peak memory of this process, on Linux.

    A new object resets the kernel's only peak.
    """

    def __init__(self) -> None:
        try:
            _RESET.write_text("5", encoding="ascii")
            self._is_measured = True
        except OSError:  # not Linux, or not permitted
            self._is_measured = False

    def megabytes(self) -> float | None:
        """Megabytes of resident memory at the peak, models included.

        None if the system does not report it.
        """
        if not self._is_measured:
            return None
        peak = _PEAK.search(_STATUS.read_text(encoding="ascii"))
        return None if peak is None else int(peak[1]) * 1024 / 1e6


def processor_name() -> str:
    """The name of the processor, for reports."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
