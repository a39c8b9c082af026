"""Blocking calls beside an event loop, in a few threads."""

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
"""Maximum number of concurrent scans.

Each already uses several cores; further ones wait in a queue.
"""


async def off_loop(call: Callable[[Cancelled], T], at_once: int = AT_ONCE) -> T:
    """Await a blocking call in a worker thread, with the caller's context variables.

    Parameters
    ----------
    call : callable
        Gets a function, to be called regularly, that returns True after the awaiting
        task was cancelled.
    at_once : int
        Number of worker threads; further calls wait.

    Examples
    --------
    >>> import asyncio
    >>> asyncio.run(off_loop(lambda cancelled: cancelled()))
    False
    """
    stop = threading.Event()
    context = contextvars.copy_context()
    threads = _threads(at_once, os.getpid())
    loop = asyncio.get_running_loop()
    waiting = loop.run_in_executor(threads, context.run, call, stop.is_set)
    try:
        return await waiting
    finally:
        stop.set()


@cache
def _threads(at_once: int, process: int) -> ThreadPoolExecutor:
    """The threads of this process.

    A forked process has none of its parent's threads and gets new ones.
    """
    return ThreadPoolExecutor(at_once, thread_name_prefix="spscanner")
