"""The most memory that this process held while it did something, on Linux."""

import re
from pathlib import Path

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)


class PeakMemory:
    """Measures from where it is made; one at a time in a process.

    The kernel keeps one peak for a process, which is set back to what is held now.
    """

    def __init__(self) -> None:
        try:
            _RESET.write_text("5", encoding="ascii")
            self._known = True
        except OSError:  # no Linux, or not allowed here
            self._known = False

    def megabytes(self) -> float | None:
        """Megabytes of resident memory at the peak, models and all; None where that cannot be known."""
        if not self._known:
            return None
        found = _PEAK.search(_STATUS.read_text(encoding="ascii"))
        return None if found is None else int(found[1]) * 1024 / 1e6
