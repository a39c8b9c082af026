"""Reranking in the forms of Cohere and of text-embeddings-inference: documents ranked by their best sentences."""

from typing import Any
from uuid import uuid4

import numpy as np
from fastapi import APIRouter, Request

from spscanner_rag.apps.serving.answers import relevance
from spscanner_rag.apps.serving.clients import client_of, gone
from spscanner_rag.apps.serving.limits import RefusedError
from spscanner_rag.apps.serving.schemas import CohereRerank, TeiRerank
from spscanner_rag.apps.serving.service import Service
from spscanner_rag.results.ranked_documents import RankedDocument, rank_results

_LOWEST = float(np.finfo(np.float32).min)


def rerank_routes(service: Service) -> APIRouter:
    """The routes ``/v1/rerank``, ``/v2/rerank`` and ``/rerank``."""
    routes = APIRouter(tags=["rerank"])

    async def ranked(request: Request, query: str, texts: list[str]) -> list[RankedDocument]:
        scored = await service.read(service.pairs(query, texts), client_of(request), gone(request))
        return rank_results(service.results(scored))

    @routes.post("/v1/rerank")
    @routes.post("/v2/rerank")
    async def cohere(body: CohereRerank, request: Request) -> dict[str, Any]:
        texts = [_text(document, body.rank_fields, number) for number, document in enumerate(body.documents)]
        best = (await ranked(request, body.query, texts))[: body.top_n]
        results: list[dict[str, Any]] = [
            {"index": one.number, "relevance_score": relevance(one.score)} for one in best
        ]
        if body.return_documents:
            for result in results:
                document = body.documents[result["index"]]
                result["document"] = {"text": document} if isinstance(document, str) else document
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
            score = max(one.score, _LOWEST) if body.raw_scores else relevance(one.score)
            answer: dict[str, Any] = {"index": one.number, "score": score}
            if body.return_text:
                answer["text"] = one.text
            if body.return_pruned_text:
                answer["pruned_text"] = one.result.context(body.pruned_sentences)
            answers.append(answer)
        return answers

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
