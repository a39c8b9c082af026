"""Progress of a request, told to the host, and the end of a cancelled one."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from threading import Event
from typing import TypeVar

from spscanner_rag.scorers import stop_if

SECONDS_BETWEEN_REPORTS = 0.1

T = TypeVar("T")

Report = Callable[[float, float | None], Awaitable[None]]
"""Tells the host how much is done, and of how much, if that is known."""


class RequestProgress:
    """Waits for the work of a request, and reports its progress at intervals.

    The work is done in other threads. It ends if the host has cancelled the request.

    Parameters
    ----------
    report : callable
        Tells the host.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        # steps before the scan, whose number is not known in advance
        self._steps_before = 0
        self._done: float = 0
        self._total: float | None = None
        self._told: float = 0
        self._is_cancelled = Event()

    def check(self) -> None:
        """Raise `ScanCancelled` if the host has cancelled the request."""
        stop_if(self._is_cancelled.is_set, "by the host")

    def step(self) -> None:
        """Count a step before the scan, with the error of `check`."""
        self.check()
        self._steps_before += 1
        self._done = self._steps_before

    def scanned(self, done: int, total: int) -> None:
        """Count tokens that were read, of those known so far."""
        self._done = self._steps_before + done
        self._total = self._steps_before + total

    async def awaited(
        self, future: "Future[T]", cancel: Callable[[], None] | None = None
    ) -> T:
        """Return the result of work in another thread.

        ``cancel`` is called if nobody waits for it any more.
        """
        work = asyncio.wrap_future(future)
        try:
            while not work.done():
                await asyncio.wait({work}, timeout=SECONDS_BETWEEN_REPORTS)
                await self._tell()
            return work.result()
        except BaseException:
            self._is_cancelled.set()
            work.cancel()
            if cancel is not None:
                cancel()
            raise

    async def _tell(self) -> None:
        if self._done > self._told:
            self._told = self._done
            await self._report(self._told, self._total)
