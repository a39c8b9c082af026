"""Run blocking scans from asynchronous code: in worker threads, a few at a time, with cancellation."""

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
"""Maximum number of concurrent scans. Each already uses several cores; further ones wait in a queue."""

_executors: dict[int, ThreadPoolExecutor] = {}
_lock = threading.Lock()


async def off_loop(call: Callable[[Cancelled], T], at_once: int = AT_ONCE) -> T:
    """Await a blocking call in one of ``at_once`` worker threads, with the caller's context variables.

    Its argument is a function, to be called regularly, that is true after the awaiting task was cancelled.
    """
    stop = threading.Event()
    context = contextvars.copy_context()
    waiting = asyncio.get_running_loop().run_in_executor(_threads(at_once), context.run, call, stop.is_set)
    try:
        return await waiting
    finally:
        stop.set()


def _threads(at_once: int) -> ThreadPoolExecutor:
    with _lock:
        if at_once not in _executors:
            _executors[at_once] = ThreadPoolExecutor(at_once, thread_name_prefix="spscanner")
        return _executors[at_once]


def _forget() -> None:
    # A forked process has none of its parent's threads, and another thread may have held the lock.
    global _executors, _lock
    _executors, _lock = {}, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
