"""The routes of this package's own API: scans, and what a remote scanner needs."""

import asyncio
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response

from spscanner_rag.apps.serving.bodies import BoundedRoute
from spscanner_rag.apps.serving.json_answers import check_one_of, json_answer
from spscanner_rag.apps.serving.limits import RefusedError
from spscanner_rag.apps.serving.progress_lines import read_in_lines
from spscanner_rag.apps.serving.reading_queue import characters_of
from spscanner_rag.apps.serving.schemas import Scan, Score, SeveralTexts, UnitsOfText
from spscanner_rag.apps.serving.service import Service
from spscanner_rag.apps.serving.token_pieces import number_of_tokens
from spscanner_rag.results import Passage, ScanResult, Selection
from spscanner_rag.results.ranked_documents import RankedDocument
from spscanner_rag.scan.requests import ScanRequest
from spscanner_rag.text.units import Unit, units_from_spans


def scan_routes(service: Service) -> APIRouter:
    """The routes below ``/v1`` for scans and for units that a client cut."""
    routes = APIRouter(prefix="/v1", tags=["scan"], route_class=BoundedRoute)
    tokenizer = service.scanner.checkpoint.tokenizer

    @routes.post("/scan")
    async def scan(body: Scan, request: Request) -> Response:
        check_one_of("text and documents", body.text, body.documents)
        # before anything is read
        scanner = service.scanner
        has_keep_scale = scanner.keep_scale is not None
        selection = body.selection(scanner.says_answers, has_keep_scale)
        texts = body.documents or []
        if body.text is not None:
            texts = [body.text]
        requests = service.pairs(body.query, texts)
        if not body.stream:
            results = await service.read(requests, request, read=body.read)
            return await json_answer(lambda: _described(body.query, results, selection))

        async def describe(results: list[ScanResult]) -> dict[str, Any]:
            described = partial(_described, body.query, results, selection)
            return {"result": await asyncio.to_thread(described)}

        return await read_in_lines(service, requests, request, describe, read=body.read)

    @routes.post("/score")
    async def score(body: Score, request: Request) -> Response:
        requests = await asyncio.to_thread(_scored_requests, service, body)
        results = await service.read(
            requests,
            request,
            together=body.together,
            collection=service.collection(body.collection),
            read=body.read,
        )
        return await json_answer(
            lambda: {"logits": [result.logits.tolist() for result in results]}
        )

    @routes.post("/segment")
    async def segment(body: SeveralTexts, request: Request) -> Response:
        service.check_size([len(text) for text in body.texts])
        cut = service.scanner.reading.cut
        units = await service.work(
            request,
            lambda check: [cut(text, check) for text in body.texts],
            service.cutter,
        )
        return await json_answer(lambda: {"units": units})

    @routes.post("/count_tokens")
    async def count_tokens(body: SeveralTexts, request: Request) -> Response:
        service.check_size([len(text) for text in body.texts])
        numbers = await service.work(
            request,
            lambda check: [
                number_of_tokens(tokenizer, text, check) for text in body.texts
            ],
        )
        return await json_answer(lambda: {"tokens": numbers})

    @routes.put("/collections/{digest}", status_code=204)
    async def keep_collection(digest: str, request: Request) -> Response:
        content = await request.body()
        await service.work(
            request,
            lambda _: service.keep_collection(digest, content),
            service.one_at_a_time,
        )
        return Response(status_code=204)

    return routes


def _scored_requests(service: Service, body: Score) -> list[ScanRequest]:
    service.collection(body.collection)  # an unknown one is refused at once
    units_by_text: list[list[Unit]] = []
    sizes: list[int] = []
    for number, asked_units in enumerate(body.requests):
        units = _units(asked_units, number)
        units_by_text.append(units)
        size = characters_of(asked_units.text, units)
        sizes.append(len(asked_units.query) + size)
    service.check_size(sizes)
    requests: list[ScanRequest] = []
    for asked_units, units in zip(body.requests, units_by_text, strict=True):
        requests.append(service.checked(asked_units.query, asked_units.text, units))
    return requests


def _units(asked_units: UnitsOfText, number: int) -> list[Unit]:
    """The units of a text.

    ``RefusedError`` if they overlap or exceed it.
    """
    spans: list[tuple[int, int]] = []
    end_before = 0
    for start, end, _ in asked_units.units:
        if not end_before <= start < end <= len(asked_units.text):
            raise RefusedError(
                422,
                f"requests.{number}.units: {start} to {end} overlaps the previous unit"
                " or exceeds the text",
            )
        end_before = end
        spans.append((start, end))
    units = list(units_from_spans(asked_units.text, spans))
    for place, (_, _, model_text) in enumerate(asked_units.units):
        if model_text is not None:
            units[place] = units[place]._replace(model_text=model_text)
    return units


def _described(
    query: str, results: list[ScanResult], selection: Selection
) -> dict[str, Any]:
    """Describe the results for JSON.

    ``RefusedError`` 422 if ``always_keep`` takes too long.
    """
    documents: list[dict[str, Any]] = []
    for number, result in enumerate(results):
        try:
            passages = result.selected(selection)
        except ValueError as error:
            raise RefusedError(422, str(error)) from None
        score = RankedDocument(number, result.document_score(), result).score
        documents.append(
            {
                "index": number,
                "score": score,
                "sentences": len(result.logits),
                "answerable": result.answerable,
                "passages": [_described_passage(passage) for passage in passages],
            }
        )
    return {"query": query, "documents": documents}


def _described_passage(passage: Passage) -> dict[str, Any]:
    return {
        "start": passage.start,
        "end": passage.end,
        "score": passage.score,
        "text": passage.text,
    }
