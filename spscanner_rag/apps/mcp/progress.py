"""Progress of a request, told to the host, and the end of a cancelled one."""

from contextlib import suppress
from time import monotonic

from anyio import NoEventLoopError, from_thread
from mcp.server.mcpserver import Context

SECONDS_BETWEEN_REPORTS = 0.1


class RequestProgress:
    """Reports progress to the host at intervals.

    It ends the work if the host has cancelled it.
    """

    def __init__(self, context: Context) -> None:
        self._report = context.report_progress
        # steps before the scan, whose number is not known in advance
        self._steps_before = 0
        self._is_scanning = False
        self._reported_at = -SECONDS_BETWEEN_REPORTS

    def __call__(self) -> bool:
        """Raise if the host cancelled.

        Works in the request's own thread only, and does nothing in a GPU's.
        """
        with suppress(NoEventLoopError):
            from_thread.check_cancelled()
            if not self._is_scanning:
                self._steps_before += 1
                self._tell(self._steps_before, None)
        return False

    def scanned(self, done: int, total: int) -> None:
        """Report how many tokens were read, of those known so far."""
        self._is_scanning = True
        self._tell(self._steps_before + done, self._steps_before + total)

    def _tell(self, done: int, total: int | None) -> None:
        if monotonic() - self._reported_at >= SECONDS_BETWEEN_REPORTS:
            self._reported_at = monotonic()
            from_thread.run(self._report, done, total)
