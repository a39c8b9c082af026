"""Routes of this package's own: sentences of texts, logits of given units, and what a remote scorer needs."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import numpy as np
from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from spscanner_rag.results import ScanResult
from spscanner_rag.scan.pipeline import ScanRequest
from spscanner_rag.scorers import ScanCancelled
from spscanner_rag.serving.answers import relevance
from spscanner_rag.serving.clients import client_of, gone
from spscanner_rag.serving.limits import RefusedError
from spscanner_rag.serving.schemas import Scan, Score, Texts, UnitsOfText
from spscanner_rag.serving.service import Service
from spscanner_rag.text.units import Unit, units_of

_NDJSON = "application/x-ndjson"


def scan_routes(service: Service) -> APIRouter:
    """The routes ``scan``, ``score``, ``segment``, ``count_tokens`` and ``collections`` below ``/v1``."""
    routes = APIRouter(prefix="/v1", tags=["scan"])

    @routes.post("/scan", response_model=None)
    async def scan(body: Scan, request: Request) -> dict[str, Any] | StreamingResponse:
        selection = _selection(body)
        requests = service.pairs(body.query, _texts(body))
        client, left = client_of(request), gone(request)
        if not body.stream:
            return _described(body, service.results(await service.read(requests, client, left)), selection)
        lines = _streamed(service, body, requests, client, left, selection)
        first = await anext(lines)  # a request that is refused gets its status, not a line of an answer
        return StreamingResponse(_chained(first, lines), media_type=_NDJSON)

    @routes.post("/score")
    async def score(body: Score, request: Request) -> dict[str, Any]:
        service.check_size([one.text for one in body.requests])
        requests = [
            service.checked(one.query, one.text, _units(one, number), body.collection)
            for number, one in enumerate(body.requests)
        ]
        together = body.together and body.collection is None
        scored = await service.read(requests, client_of(request), gone(request), together=together)
        return {"logits": [one.logits.tolist() for one in scored]}

    @routes.post("/segment")
    async def segment(body: Texts) -> dict[str, Any]:
        service.check_size(body.texts)
        cut = [await asyncio.to_thread(service.scanner.segment, text) for text in body.texts]
        return {"units": cut}

    @routes.post("/count_tokens")
    async def count_tokens(body: Texts) -> dict[str, Any]:
        service.check_size(body.texts)
        return {
            "tokens": [await asyncio.to_thread(service.scanner.count_tokens, text) for text in body.texts]
        }

    @routes.put("/collections/{digest}", status_code=204)
    async def keep_collection(digest: str, request: Request) -> Response:
        await asyncio.to_thread(service.keep_collection, digest, await request.body())
        return Response(status_code=204)

    return routes


def _texts(body: Scan) -> list[str]:
    try:
        return body.texts()
    except ValueError as error:
        raise RefusedError(422, str(error)) from None


def _selection(body: Scan) -> dict[str, Any]:
    names = ("top_k", "threshold", "max_tokens", "context", "order", "merge")
    selection = {name: getattr(body, name) for name in names}
    none = np.empty(0, np.int64)
    try:  # before anything is read
        ScanResult(body.query, "", none, none, np.empty(0, np.float32), len).select(**selection)
    except ValueError as error:
        raise RefusedError(422, str(error)) from None
    return selection


def _units(one: UnitsOfText, number: int) -> list[Unit]:
    """The units of a text; ``RefusedError`` if they overlap or leave it."""
    before = 0
    for start, end, _ in one.units:
        if not before <= start < end <= len(one.text):
            raise RefusedError(
                422,
                f"requests.{number}.units: {start} to {end} overlaps the unit before it or leaves the text",
            )
        before = end
    whole = units_of(one.text, [(start, end) for start, end, _ in one.units])
    return [
        unit if model_text is None else unit._replace(model_text=model_text)
        for unit, (_, _, model_text) in zip(whole, one.units, strict=True)
    ]


def _described(body: Scan, results: list[ScanResult], selection: dict[str, Any]) -> dict[str, Any]:
    return {
        "query": body.query,
        "documents": [
            {
                "index": number,
                "score": relevance(result.document_score()),
                "sentences": len(result.logits),
                "passages": [
                    {"start": one.start, "end": one.end, "score": one.score, "text": one.text}
                    for one in result.select(**selection)
                ],
            }
            for number, result in enumerate(results)
        ],
    }


async def _streamed(
    service: Service,
    body: Scan,
    requests: list[ScanRequest],
    client: str,
    left: Callable[[], Awaitable[None]],
    selection: dict[str, Any],
) -> AsyncIterator[dict[str, Any]]:
    """Progress, as often as the client takes it, and at the end the result or what went wrong."""
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
        yield {"result": _described(body, service.results(reading.result()), selection)}
    finally:
        reading.cancel()


async def _chained(first: dict[str, Any], lines: AsyncIterator[dict[str, Any]]) -> AsyncIterator[bytes]:
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
