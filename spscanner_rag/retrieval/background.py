"""Run scans beside an event loop: off its thread, a few at a time, until their caller is cancelled."""

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from spscanner_rag.scorers import Cancelled

T = TypeVar("T")

AT_ONCE = max(1, min(4, (os.cpu_count() or 1) // 2))
"""Scans that run at the same time, since one already uses several cores; further ones wait without a thread."""

_executor: ThreadPoolExecutor | None = None
_lock = threading.Lock()


async def off_loop(call: Callable[[Cancelled], T]) -> T:
    """Await a blocking call in a thread of its own.

    The event loop has few threads, and other calls of the application wait for them.

    Parameters
    ----------
    call
        Gets a function that says whether the awaiting task was cancelled, to be asked now and then. It runs
        in a copy of the caller's context variables, which tracing needs.
    """
    stop = threading.Event()
    context = contextvars.copy_context()
    waiting = asyncio.get_running_loop().run_in_executor(_threads(), context.run, call, stop.is_set)
    try:
        return await waiting
    finally:
        stop.set()


def _threads() -> ThreadPoolExecutor:
    global _executor
    with _lock:
        if _executor is None:
            _executor = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="spscanner")
        return _executor


def _forget() -> None:
    # A fork has none of its parent's threads, and the lock may have been held.
    global _executor, _lock
    _executor, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
