"""Answers in lines of JSON: how far a text is read, then the result."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from fastapi import Request
from fastapi.responses import StreamingResponse

from spscanner_rag.apps.serving.limits import RefusedError
from spscanner_rag.apps.serving.service import Service
from spscanner_rag.results import ScanResult
from spscanner_rag.scan.requests import ScanRequest
from spscanner_rag.scorers import Read, ScanCancelled

SECONDS_BETWEEN = 0.05  # between two reports of progress

Describe = Callable[[list[ScanResult]], Awaitable[dict[str, Any]]]


async def read_in_lines(
    service: Service,
    requests: Sequence[ScanRequest],
    asking: Request,
    describe: Describe,
    read: Read | None = None,
) -> StreamingResponse:
    """Answer in lines: progress, as fast as the client takes it, then the result.

    ``describe`` makes the result, and ``read`` is as for `Service.read`.
    """
    lines = _lines(service, requests, asking, describe, read)
    first = await anext(lines)  # a request refused by then gets its status

    async def all_lines() -> AsyncIterator[bytes]:
        yield first
        async for line in lines:
            yield line

    return StreamingResponse(all_lines(), media_type="application/x-ndjson")


async def _lines(
    service: Service,
    requests: Sequence[ScanRequest],
    asking: Request,
    describe: Describe,
    read: Read | None,
) -> AsyncIterator[bytes]:
    newest = (0, 0)
    told = (0, 0)

    def progress(done: int, total: int) -> None:  # called in the reading thread
        nonlocal newest
        newest = (done, total)

    reading = asyncio.ensure_future(
        service.read(requests, asking, read=read, progress=progress)
    )
    try:
        while not reading.done():
            await asyncio.wait({reading}, timeout=SECONDS_BETWEEN)
            if newest != told and not reading.done():
                told = newest
                yield _line({"progress": {"tokens": told[0], "of": told[1]}})
        yield _line(await describe(reading.result()))
    except (RefusedError, ScanCancelled) as error:
        if told == (0, 0):
            raise
        if isinstance(error, RefusedError):
            refused = {"status": error.status_code, "message": error.detail}
            yield _line({"error": refused})
    finally:
        reading.cancel()


def _line(value: dict[str, Any]) -> bytes:
    # ASCII, because some clients also end a line at U+2028
    return json.dumps(value).encode() + b"\n"
