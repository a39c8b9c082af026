"""Whether an event loop runs other tasks while a worker thread is busy."""

import asyncio
import threading
from collections.abc import Awaitable
from typing import Any


class EventLoop:
    """Tells blocking work whether the event loop still runs other tasks meanwhile."""

    def __init__(self) -> None:
        self._asked, self._answered = threading.Event(), threading.Event()

    def runs(self) -> bool:
        """For the work: whether another task answers while this call waits."""
        self._answered.clear()
        self._asked.set()
        return self._answered.wait(10)

    async def beside(self, work: Awaitable[Any]) -> Any:
        """The result of ``work``, beside a task that answers."""

        async def answer() -> None:
            while True:
                await asyncio.sleep(0.002)
                if self._asked.is_set():
                    self._asked.clear()
                    self._answered.set()

        answering = asyncio.create_task(answer())
        try:
            return await work
        finally:
            answering.cancel()
