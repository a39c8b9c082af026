"""Run blocking scans from asynchronous code: in worker threads, a few at a time, with cancellation."""

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from spscanner_rag.scorers import Cancelled

T = TypeVar("T")

AT_ONCE = max(1, min(4, (os.cpu_count() or 1) // 2))
"""Maximum number of concurrent scans. Each already uses several cores; further ones wait in a queue."""


async def off_loop(call: Callable[[Cancelled], T], at_once: int = AT_ONCE) -> T:
    """Await a blocking call in one of ``at_once`` worker threads, with the caller's context variables.

    Its argument is a function, to be called regularly, that is true after the awaiting task was cancelled.
    """
    stop = threading.Event()
    context = contextvars.copy_context()
    threads = _threads(at_once, os.getpid())
    waiting = asyncio.get_running_loop().run_in_executor(threads, context.run, call, stop.is_set)
    try:
        return await waiting
    finally:
        stop.set()


@cache
def _threads(at_once: int, process: int) -> ThreadPoolExecutor:
    """The threads of this process: a forked one has none of its parent's."""
    return ThreadPoolExecutor(at_once, thread_name_prefix="spscanner")
