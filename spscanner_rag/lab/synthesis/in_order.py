"""Work on a stream of items by several threads, with the results in the order of the items."""

import contextvars
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_AHEAD = 4
"""Items under way for each thread: some take longer than others, and results wait for their turn."""


def in_order(
    items: Iterable[Item], work: Callable[[Item], Result], workers: int, stop: threading.Event
) -> Iterator[Result]:
    """The results of ``work``, in the order of the items; only a few items are held at a time.

    An exception of ``work`` ends the stream at its item. ``stop`` is set then, and when the caller ends early;
    what is under way is waited for.
    """
    waiting: deque[Future[Result]] = deque()
    pool = ThreadPoolExecutor(workers, thread_name_prefix="spscanner-synthesis")
    try:
        for item in items:
            context = contextvars.copy_context()  # tracing libraries keep their state in it
            waiting.append(pool.submit(context.run, work, item))
            if len(waiting) >= _AHEAD * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)
