"""Blocking calls beside an event loop: few at once, and in forks."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from spscanner_rag.retrieval.worker_threads import AT_ONCE, off_loop

PATIENCE = 20.0
"""Seconds that a test waits for something that must come at once."""


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
    # asyncio's own threads stay free for other calls, all of them
    others = await asyncio.wait_for(
        asyncio.gather(*(asyncio.to_thread(threading.get_ident) for _ in range(64))),
        PATIENCE,
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
    assert begun == 44  # calls that were cancelled while waiting never began


FORK = """
import asyncio, os, sys, threading
from spscanner_rag.retrieval.worker_threads import off_loop

async def main():
    return await off_loop(lambda cancelled: threading.current_thread().name)

asyncio.run(main())  # the threads are up
child = os.fork()
if not child:
    asyncio.run(main())
    os._exit(7)
_, status = os.waitpid(child, 0)
asyncio.run(main())
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no fork there")
def test_works_in_a_fork() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORK], timeout=60, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (7, "")
