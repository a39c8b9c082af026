"""Answers in lines of JSON: how far the reading is, then the result or what went wrong."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from fastapi.responses import StreamingResponse

from spscanner_rag.apps.serving.limits import RefusedError
from spscanner_rag.apps.serving.service import Gone, Service
from spscanner_rag.scan.pipeline import ScanRequest, Scored
from spscanner_rag.scorers import ScanCancelled

Describe = Callable[[list[Scored]], Awaitable[dict[str, Any]]]
"""Makes the last line of what was read."""


async def with_progress(
    service: Service, requests: Sequence[ScanRequest], client: str, left: Gone, describe: Describe
) -> StreamingResponse:
    """Have requests read, and tell the client how far it is, as often as it takes it.

    Raises ``RefusedError`` for a request that is refused before it is read: it gets its status, not a line.
    """
    lines = _lines(service, requests, client, left, describe)
    return StreamingResponse(_encoded(await anext(lines), lines), media_type="application/x-ndjson")


async def _lines(
    service: Service, requests: Sequence[ScanRequest], client: str, left: Gone, describe: Describe
) -> AsyncIterator[dict[str, Any]]:
    loop, changed, newest = asyncio.get_running_loop(), asyncio.Event(), (0, 0)

    def progress(done: int, total: int) -> None:  # called in a reading thread
        nonlocal newest
        newest = (done, total)
        loop.call_soon_threadsafe(changed.set)

    reading = asyncio.ensure_future(service.read(requests, client, left, progress=progress))
    try:
        while not reading.done():
            waiting = asyncio.ensure_future(changed.wait())
            await asyncio.wait({reading, waiting}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            if changed.is_set() and not reading.done():
                changed.clear()
                yield {"progress": {"tokens": newest[0], "of": newest[1]}}
        yield await describe(reading.result())
    finally:
        reading.cancel()


async def _encoded(first: dict[str, Any], lines: AsyncIterator[dict[str, Any]]) -> AsyncIterator[bytes]:
    yield _line(first)
    try:
        async for line in lines:
            yield _line(line)
    except RefusedError as error:
        yield _line({"error": {"status": error.status, "message": error.message}})
    except ScanCancelled:
        return


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=True).encode() + b"\n"
