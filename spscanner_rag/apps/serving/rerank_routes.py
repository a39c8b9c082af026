"""The routes for clients of Cohere and of text-embeddings-inference."""

import asyncio
from typing import Any
from uuid import uuid4

import numpy as np
from fastapi import APIRouter, Request, Response

from spscanner_rag.apps.serving.bodies import BoundedRoute
from spscanner_rag.apps.serving.json_answers import json_answer
from spscanner_rag.apps.serving.limits import RefusedError
from spscanner_rag.apps.serving.schemas import CohereRerank, TeiRerank
from spscanner_rag.apps.serving.service import Service
from spscanner_rag.apps.serving.token_pieces import first_tokens
from spscanner_rag.results.ranked_documents import RankedDocument, rank_results

_LOWEST = float(np.finfo(np.float32).min)


def rerank_routes(service: Service) -> APIRouter:
    """The routes ``/v1/rerank``, ``/v2/rerank`` and ``/rerank``.

    Documents are ranked by their best sentences.
    """
    routes = APIRouter(tags=["rerank"], route_class=BoundedRoute)
    tokenizer = service.scanner.checkpoint.tokenizer

    @routes.post("/v1/rerank")
    @routes.post("/v2/rerank")
    async def cohere(body: CohereRerank, request: Request) -> Response:
        texts = await asyncio.to_thread(_texts_of, service, body)
        n_tokens = body.max_tokens_per_doc
        if n_tokens is not None:
            limit = n_tokens
            texts = await service.work(
                request,
                lambda check: [
                    first_tokens(tokenizer, text, limit, check) for text in texts
                ],
            )
        requests = service.pairs(body.query, texts)
        results = await service.read(requests, request, read=body.read)
        version = request.url.path.split("/")[1].removeprefix("v")
        return await json_answer(
            lambda: _as_cohere(body, rank_results(results), version)
        )

    @routes.post("/rerank")
    async def tei(body: TeiRerank, request: Request) -> Response:
        requests = service.pairs(body.query, body.texts)
        results = await service.read(requests, request, read=body.read)
        return await json_answer(
            lambda: [_as_tei(body, document) for document in rank_results(results)]
        )

    return routes


def _as_cohere(
    body: CohereRerank, ranked: list[RankedDocument], version: str
) -> dict[str, Any]:
    results: list[dict[str, Any]] = []
    for document in ranked[: body.top_n]:
        result: dict[str, Any] = {
            "index": document.number,
            "relevance_score": document.score,
        }
        if body.return_documents:
            sent_document = body.documents[document.number]
            if isinstance(sent_document, str):
                sent_document = {"text": sent_document}
            result["document"] = sent_document
        results.append(result)
    meta = {"api_version": {"version": version}, "billed_units": {"search_units": 1}}
    return {"id": str(uuid4()), "results": results, "meta": meta}


def _as_tei(body: TeiRerank, document: RankedDocument) -> dict[str, Any]:
    score = document.score
    if body.raw_scores:
        score = max(document.logit, _LOWEST)
    answer: dict[str, Any] = {"index": document.number, "score": score}
    if body.return_text:
        answer["text"] = document.text
    if body.return_pruned_text:
        answer["pruned_text"] = document.result.context(body.pruned_sentences)
    return answer


def _texts_of(service: Service, body: CohereRerank) -> list[str]:
    """The texts of documents: their fields, joined after a check of the total size."""
    names = body.rank_fields or ["text"]
    fields_by_document: list[list[str]] = []
    sizes: list[int] = []
    for number, document in enumerate(body.documents):
        fields = _fields(document, names, number)
        fields_by_document.append(fields)
        sizes.append(sum(map(len, fields)))
    service.check_size(sizes, len(body.query))
    return ["\n".join(fields) for fields in fields_by_document]


def _fields(document: str | dict[str, Any], names: list[str], number: int) -> list[str]:
    if isinstance(document, str):
        return [document]
    for name in names:
        if not isinstance(document.get(name), str):
            raise RefusedError(
                422,
                f"documents.{number} has no text in {name!r:.80}; name its fields in"
                " rank_fields",
            )
    return [document[name] for name in names]
