"""Routes of this package's own: sentences of texts, logits of given units, and what a remote scorer needs."""

import asyncio
from typing import Any

import numpy as np
from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from spscanner_rag.apps.serving.answers import relevance
from spscanner_rag.apps.serving.clients import client_of, gone
from spscanner_rag.apps.serving.limits import RefusedError
from spscanner_rag.apps.serving.progress_lines import with_progress
from spscanner_rag.apps.serving.schemas import Scan, Score, Texts, UnitsOfText
from spscanner_rag.apps.serving.service import Service
from spscanner_rag.results import ScanResult
from spscanner_rag.scan.pipeline import Scored
from spscanner_rag.text.units import Unit, units_of


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

        async def described(scored: list[Scored]) -> dict[str, Any]:
            return {"result": _described(body, service.results(scored), selection)}

        return await with_progress(service, requests, client, left, described)

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
