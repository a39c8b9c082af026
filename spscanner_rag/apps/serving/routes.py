"""The routes: reranking as Cohere and text-embeddings-inference define it, and scans in a form of our own."""

import asyncio
from typing import Any
from uuid import uuid4

import numpy as np
from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from spscanner_rag.apps.serving.limits import RefusedError
from spscanner_rag.apps.serving.schemas import CohereRerank, Scan, Score, TeiRerank, Texts, UnitsOfText
from spscanner_rag.apps.serving.service import Service, relevance
from spscanner_rag.results import ScanResult, Selection
from spscanner_rag.results.ranked_documents import RankedDocument, rank_results
from spscanner_rag.scan.pipeline import Scored
from spscanner_rag.text.units import Unit, units_of

_LOWEST = float(np.finfo(np.float32).min)
_SELECTION = {"top_k", "threshold", "max_tokens", "context", "order", "merge"}  # what a scan says of it


def rerank_routes(service: Service) -> APIRouter:
    """The routes ``/v1/rerank``, ``/v2/rerank`` and ``/rerank``: documents ranked by their best sentences."""
    routes = APIRouter(tags=["rerank"])

    async def ranked(request: Request, query: str, texts: list[str]) -> list[RankedDocument]:
        scored = await service.read(service.pairs(query, texts), request)
        return rank_results(service.results(scored))

    @routes.post("/v1/rerank")
    @routes.post("/v2/rerank")
    async def cohere(body: CohereRerank, request: Request) -> dict[str, Any]:
        texts = [_text(document, body.rank_fields, number) for number, document in enumerate(body.documents)]
        results = []
        for one in (await ranked(request, body.query, texts))[: body.top_n]:
            result: dict[str, Any] = {"index": one.number, "relevance_score": one.score}
            if body.return_documents:
                document = body.documents[one.number]
                result["document"] = {"text": document} if isinstance(document, str) else document
            results.append(result)
        version = {"version": request.url.path.split("/")[1].removeprefix("v")}
        return {
            "id": str(uuid4()),
            "results": results,
            "meta": {"api_version": version, "billed_units": {"search_units": 1}},
        }

    @routes.post("/rerank")
    async def tei(body: TeiRerank, request: Request) -> list[dict[str, Any]]:
        answers = []
        for one in await ranked(request, body.query, body.texts):
            score = max(one.logit, _LOWEST) if body.raw_scores else one.score
            answer: dict[str, Any] = {"index": one.number, "score": score}
            if body.return_text:
                answer["text"] = one.text
            if body.return_pruned_text:
                answer["pruned_text"] = one.result.context(body.pruned_sentences)
            answers.append(answer)
        return answers

    return routes


def scan_routes(service: Service) -> APIRouter:
    """The routes ``scan``, ``score``, ``segment``, ``count_tokens`` and ``collections`` below ``/v1``."""
    routes = APIRouter(prefix="/v1", tags=["scan"])

    @routes.post("/scan", response_model=None)
    async def scan(body: Scan, request: Request) -> dict[str, Any] | StreamingResponse:
        selection = _selection(body)
        requests = service.pairs(body.query, _texts(body))
        if not body.stream:
            return _described(body, service.results(await service.read(requests, request)), selection)

        async def described(scored: list[Scored]) -> dict[str, Any]:
            return {"result": _described(body, service.results(scored), selection)}

        return await service.read_in_lines(requests, request, described)

    @routes.post("/score")
    async def score(body: Score, request: Request) -> dict[str, Any]:
        service.check_size([one.text for one in body.requests])
        requests = [
            service.checked(one.query, one.text, _units(one, number), body.collection)
            for number, one in enumerate(body.requests)
        ]
        together = body.together and body.collection is None
        scored = await service.read(requests, request, together=together)
        return {"logits": [one.logits.tolist() for one in scored]}

    @routes.post("/segment")
    async def segment(body: Texts) -> dict[str, Any]:
        service.check_size(body.texts)
        return {"units": [await asyncio.to_thread(service.scanner.segment, text) for text in body.texts]}

    @routes.post("/count_tokens")
    async def count_tokens(body: Texts) -> dict[str, Any]:
        service.check_size(body.texts)
        count = service.scanner.count_tokens
        return {"tokens": [await asyncio.to_thread(count, text) for text in body.texts]}

    @routes.put("/collections/{digest}", status_code=204)
    async def keep_collection(digest: str, request: Request) -> Response:
        await asyncio.to_thread(service.keep_collection, digest, await request.body())
        return Response(status_code=204)

    return routes


def _text(document: str | dict[str, Any], rank_fields: list[str] | None, number: int) -> str:
    if isinstance(document, str):
        return document
    fields = rank_fields or ["text"]
    missing = [name for name in fields if not isinstance(document.get(name), str)]
    if missing:
        raise RefusedError(
            422, f"documents.{number} has no text in {missing[0]!r:.80}; name its fields in rank_fields"
        )
    return "\n".join(document[name] for name in fields)


def _texts(body: Scan) -> list[str]:
    if (body.text is None) == (body.documents is None):
        raise RefusedError(422, "got both or neither of text and documents; expected one of them")
    return [body.text] if body.text is not None else list(body.documents or ())


def _selection(body: Scan) -> Selection:
    try:  # before anything is read
        return Selection(**body.model_dump(include=_SELECTION))
    except ValueError as error:
        raise RefusedError(422, str(error)) from None


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


def _described(body: Scan, results: list[ScanResult], selection: Selection) -> dict[str, Any]:
    return {
        "query": body.query,
        "documents": [
            {
                "index": number,
                "score": relevance(result.document_score()),
                "sentences": len(result.logits),
                "answerable": result.answerable,
                "passages": [
                    {"start": one.start, "end": one.end, "score": one.score, "text": one.text}
                    for one in result.selected(selection)
                ],
            }
            for number, result in enumerate(results)
        ],
    }
