"""Blocking calls beside an event loop: context, errors, cancellation, threads, several loops, forks."""

import asyncio
import contextvars
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from spscanner_rag.retrieval.background import AT_ONCE, off_loop

TRACE: contextvars.ContextVar[str] = contextvars.ContextVar("TRACE", default="unset")
PATIENCE = 20.0
"""Seconds that a test waits for what must come at once."""


async def test_runs_in_a_thread_of_its_own_with_the_callers_context() -> None:
    async def one(name: str) -> tuple[str, str, bool]:
        def call(cancelled: Callable[[], bool]) -> tuple[str, str, bool]:
            seen = TRACE.get()
            TRACE.set("inner")
            return seen, threading.current_thread().name.partition("_")[0], cancelled()

        TRACE.set(name)
        found = await off_loop(call)
        assert TRACE.get() == name
        return found

    names = [str(number) for number in range(20)]
    assert await asyncio.gather(*map(one, names)) == [(name, "spscanner", False) for name in names]


@pytest.mark.parametrize("error", [ValueError("no"), KeyError("k"), asyncio.CancelledError()])
async def test_errors_come_through(error: BaseException) -> None:
    def call(cancelled: Callable[[], bool]) -> None:
        raise error

    with pytest.raises(type(error)):
        await off_loop(call)


async def test_a_cancelled_task_returns_at_once_and_its_call_is_told() -> None:
    started, told, release = threading.Event(), threading.Event(), threading.Event()

    def call(cancelled: Callable[[], bool]) -> None:
        started.set()
        while not cancelled():
            time.sleep(0.001)
        told.set()
        assert release.wait(PATIENCE)
        raise RuntimeError("nobody is listening any more")

    task = asyncio.ensure_future(off_loop(call))
    while not started.is_set():
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task  # while the call is still in its thread
    assert not release.is_set()
    while not told.is_set():
        await asyncio.sleep(0.001)
    release.set()
    assert await off_loop(lambda cancelled: "next") == "next"


async def test_few_run_at_once_and_the_waiting_take_no_thread() -> None:
    running, most, begun = 0, 0, 0
    lock, release = threading.Lock(), threading.Event()

    def call(cancelled: Callable[[], bool]) -> None:
        nonlocal running, most, begun
        with lock:
            running, begun = running + 1, begun + 1
            most = max(most, running)
        assert release.wait(PATIENCE)
        with lock:
            running -= 1

    tasks = [asyncio.ensure_future(off_loop(call)) for _ in range(64)]
    while begun < AT_ONCE:
        await asyncio.sleep(0.001)
    # asyncio's own threads are free for other calls, as many as it has of them
    others = await asyncio.wait_for(
        asyncio.gather(*(asyncio.to_thread(threading.get_ident) for _ in range(64))), PATIENCE
    )
    assert len(others) == 64
    assert begun == AT_ONCE
    cancelled = tasks[-20:]
    for task in cancelled:
        task.cancel()
    await asyncio.wait(cancelled)
    release.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results[-20:]] == [asyncio.CancelledError] * 20
    assert results[:-20] == [None] * 44
    assert most == AT_ONCE
    assert begun == 44  # what was cancelled while it waited never began


def test_several_loops_in_several_threads() -> None:
    def run(number: int) -> list[int]:
        async def main() -> list[int]:
            return await asyncio.gather(*(off_loop(lambda cancelled, i=i: i * number) for i in range(10)))

        return asyncio.run(main())

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(run, range(8))) == [[i * number for i in range(10)] for number in range(8)]


FORK = """
import asyncio, os, sys, threading
from spscanner_rag.retrieval import background

async def main():
    return await background.off_loop(lambda cancelled: threading.current_thread().name)

asyncio.run(main())  # the threads are up
held = background._lock
held.acquire()  # as another thread may hold it at that moment
child = os.fork()
if not child:
    asyncio.run(main())
    os._exit(7)
held.release()
_, status = os.waitpid(child, 0)
asyncio.run(main())
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no fork there")
def test_works_in_a_fork() -> None:
    done = subprocess.run([sys.executable, "-c", FORK], timeout=60, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (7, "")
