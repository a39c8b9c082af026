"""The routes: reranking as Cohere and text-embeddings-inference define it, and scans in a form of our own."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import uuid4

import numpy as np
from fastapi import APIRouter, Request, Response
from pydantic_core import to_json
from tokenizers import Tokenizer

from spscanner_rag.apps.serving.limits import RefusedError
from spscanner_rag.apps.serving.reading_queue import characters_of
from spscanner_rag.apps.serving.schemas import (
    BoundedRoute,
    CohereRerank,
    Scan,
    Score,
    SeveralTexts,
    TeiRerank,
    UnitsOfText,
)
from spscanner_rag.apps.serving.service import Service
from spscanner_rag.results import ScanResult, Selection
from spscanner_rag.results.together import RankedDocument, rank_results
from spscanner_rag.scan.pipeline import ScanRequest, Scored
from spscanner_rag.text.tokenization import tokenize_in_pieces
from spscanner_rag.text.units import Unit, units_of

_LOWEST = float(np.finfo(np.float32).min)
_SELECTION = {"top_k", "threshold", "max_tokens", "context", "order", "merge"}  # what a scan says of it


def rerank_routes(service: Service) -> APIRouter:
    """The routes ``/v1/rerank``, ``/v2/rerank`` and ``/rerank``: documents ranked by their best sentences."""
    routes = APIRouter(tags=["rerank"], route_class=BoundedRoute)

    @routes.post("/v1/rerank")
    @routes.post("/v2/rerank")
    async def cohere(body: CohereRerank, request: Request) -> Response:
        texts = await asyncio.to_thread(_texts_of, service, body)
        if most := body.max_tokens_per_doc:
            tokenizer = service.scanner.checkpoint.tokenizer
            texts = await service.work(
                request, lambda check: [_first_tokens(tokenizer, text, most, check) for text in texts]
            )
        scored = await service.read(service.pairs(body.query, texts), request)
        version = request.url.path.split("/")[1].removeprefix("v")
        return await _json(lambda: _as_cohere(body, rank_results(service.results(scored)), version))

    @routes.post("/rerank")
    async def tei(body: TeiRerank, request: Request) -> Response:
        scored = await service.read(service.pairs(body.query, body.texts), request)
        return await _json(lambda: [_as_tei(body, one) for one in rank_results(service.results(scored))])

    return routes


def scan_routes(service: Service) -> APIRouter:
    """The routes ``scan``, ``score``, ``segment``, ``count_tokens`` and ``collections`` below ``/v1``."""
    routes = APIRouter(prefix="/v1", tags=["scan"], route_class=BoundedRoute)

    @routes.post("/scan")
    async def scan(body: Scan, request: Request) -> Response:
        selection = _selection(body)
        requests = service.pairs(body.query, _texts(body))
        if not body.stream:
            scored = await service.read(requests, request)
            return await _json(lambda: _described(body, service.results(scored), selection))

        async def described(scored: list[Scored]) -> dict[str, Any]:
            return {"result": await asyncio.to_thread(_described, body, service.results(scored), selection)}

        return await service.read_in_lines(requests, request, described)

    @routes.post("/score")
    async def score(body: Score, request: Request) -> Response:
        requests = await asyncio.to_thread(_scored_requests, service, body)
        together = body.together and body.collection is None
        scored = await service.read(requests, request, together=together)
        return await _json(lambda: {"logits": [one.logits.tolist() for one in scored]})

    @routes.post("/segment")
    async def segment(body: SeveralTexts, request: Request) -> Response:
        service.check_size([len(text) for text in body.texts])
        cut = service.scanner.reading.cut
        units = await service.work(
            request, lambda check: [cut(text, check) for text in body.texts], service.cutter
        )
        return await _json(lambda: {"units": units})

    @routes.post("/count_tokens")
    async def count_tokens(body: SeveralTexts, request: Request) -> Response:
        service.check_size([len(text) for text in body.texts])
        tokenizer = service.scanner.checkpoint.tokenizer
        count = partial(_count_in_pieces, tokenizer)
        tokens = await service.work(request, lambda check: [count(text, check) for text in body.texts])
        return await _json(lambda: {"tokens": tokens})

    @routes.put("/collections/{digest}", status_code=204)
    async def keep_collection(digest: str, request: Request) -> Response:
        content = await request.body()
        await service.work(request, lambda _: service.keep_collection(digest, content), service.one_at_a_time)
        return Response(status_code=204)

    return routes


async def _json(answer: Callable[[], Any]) -> Response:
    """An answer that may be large, made and written in a thread."""
    return Response(await asyncio.to_thread(lambda: to_json(answer())), media_type="application/json")


def _as_cohere(body: CohereRerank, ranked: list[RankedDocument], version: str) -> dict[str, Any]:
    results = []
    for one in ranked[: body.top_n]:
        result: dict[str, Any] = {"index": one.number, "relevance_score": one.score}
        if body.return_documents:
            document = body.documents[one.number]
            result["document"] = {"text": document} if isinstance(document, str) else document
        results.append(result)
    meta = {"api_version": {"version": version}, "billed_units": {"search_units": 1}}
    return {"id": str(uuid4()), "results": results, "meta": meta}


def _as_tei(body: TeiRerank, one: RankedDocument) -> dict[str, Any]:
    score = max(one.logit, _LOWEST) if body.raw_scores else one.score
    answer: dict[str, Any] = {"index": one.number, "score": score}
    if body.return_text:
        answer["text"] = one.text
    if body.return_pruned_text:
        answer["pruned_text"] = one.result.context(body.pruned_sentences)
    return answer


def _texts_of(service: Service, body: CohereRerank) -> list[str]:
    """The texts of documents: their fields joined, once it is known that the sum is not too large."""
    names = body.rank_fields or ["text"]
    parts = [_fields(document, names, number) for number, document in enumerate(body.documents)]
    service.check_size([sum(map(len, fields)) for fields in parts], len(body.query))
    return ["\n".join(fields) for fields in parts]


def _fields(document: str | dict[str, Any], names: list[str], number: int) -> list[str]:
    if isinstance(document, str):
        return [document]
    missing = [name for name in names if not isinstance(document.get(name), str)]
    if missing:
        raise RefusedError(
            422, f"documents.{number} has no text in {missing[0]!r:.80}; name its fields in rank_fields"
        )
    return [document[name] for name in names]


def _scored_requests(service: Service, body: Score) -> list[ScanRequest]:
    units = [_units(one, number) for number, one in enumerate(body.requests)]
    asked = list(zip(body.requests, units, strict=True))
    service.check_size([len(one.query) + characters_of(one.text, own) for one, own in asked])
    return [service.checked(one.query, one.text, own, body.collection) for one, own in asked]


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
                "score": RankedDocument(number, result.document_score(), result).score,
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


def _count_in_pieces(tokenizer: Tokenizer, text: str, between_pieces: Callable[[], None]) -> int:
    """The number of tokens, counted in bounded memory; ``between_pieces`` may raise."""
    tokens = 0
    for ids, _ in tokenize_in_pieces(tokenizer, text):
        between_pieces()
        tokens += len(ids)
    return tokens


def _first_tokens(tokenizer: Tokenizer, text: str, most: int, between_pieces: Callable[[], None]) -> str:
    """The beginning of a text that has so many tokens, in bounded memory; ``between_pieces`` may raise."""
    for ids, offsets in tokenize_in_pieces(tokenizer, text):
        between_pieces()
        if len(ids) >= most:
            return text[: int(offsets[most - 1, 1])]
        most -= len(ids)
    return text
