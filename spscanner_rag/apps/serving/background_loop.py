"""An event loop in a thread of its own, so that blocking and asynchronous callers share one way of waiting."""

import asyncio
import os
import threading
import weakref
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class BackgroundLoop:
    """Runs coroutines in one thread, which is started by the first and ends with this object or the process."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = 0
        self._lock = threading.Lock()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine from any thread; cancelling the future cancels it."""
        return asyncio.run_coroutine_threadsafe(work, self._running())

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if (
                self._loop is None or self._process != os.getpid()
            ):  # a forked process has no thread for the loop
                loop = asyncio.new_event_loop()
                threading.Thread(target=_run, args=(loop,), name="spscanner-remote", daemon=True).start()
                weakref.finalize(self, loop.call_soon_threadsafe, loop.stop).atexit = False
                self._loop, self._process = loop, os.getpid()
            return self._loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()
