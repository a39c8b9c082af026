"""The ASGI application: its routes and its errors.

Any ASGI server can run it, in one process.
"""

import asyncio
import base64
import binascii
import ctypes
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from hashlib import sha256
from typing import Any
from uuid import uuid4

import numpy as np
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, StreamingResponse
from numpy.typing import NDArray
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from tokenizers import Tokenizer

from spscanner_rag.apps.pages.html_page import render
from spscanner_rag.apps.pages.report import REPORT, render_report
from spscanner_rag.apps.pages.scanned_document import ScannedDocument, select_together
from spscanner_rag.apps.serving.access import Access, Limits, RefusedError, refusal
from spscanner_rag.apps.serving.schemas import (
    BoundedRoute,
    CohereRerank,
    Given,
    Page,
    Scan,
    Score,
    SeveralTexts,
    TeiRerank,
    UnitsOfText,
    invalid,
)
from spscanner_rag.apps.serving.service import CutDocument, Service, characters_of
from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.pdf_passages import Picture, pictures_of
from spscanner_rag.files.reading import read_bytes
from spscanner_rag.results import ScanResult, Selection
from spscanner_rag.results.scan_result import RankedDocument, rank_results
from spscanner_rag.scan.pipeline import ScanRequest
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import ScanCancelled
from spscanner_rag.text.escaping import one_line
from spscanner_rag.text.tokenization import tokenize_in_pieces
from spscanner_rag.text.units import Unit, units_of

TRIM_SECONDS = 1.0
PASTED = "pasted text"
_BYTES_EACH = 300  # memory of a unit or a block without its text
_LOWEST = float(np.finfo(np.float32).min)


def create_app(
    scanner: Scanner, *, token: str | None = None, limits: Limits | None = None
) -> FastAPI:
    """Create the application of a scanner.

    ``ValueError`` for a token that is empty or not printable ASCII.

    Without a token, only requests to this machine's own names are answered.
    """
    if token is not None and not (
        token.isascii() and token.isprintable() and token.strip() == token != ""
    ):
        raise ValueError(
            "the token is empty or has characters other than printable ASCII"
        )
    limits = limits or Limits()
    service = Service(scanner, limits)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        trimming = asyncio.create_task(give_back_memory())
        yield
        trimming.cancel()
        await asyncio.to_thread(service.close)

    # The pages of interactive documentation load scripts of other hosts, so there are
    # none.
    app = FastAPI(
        title="spscanner-rag",
        version="1",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.state.service = service
    _add_status_routes(app, service)
    for routes in (
        rerank_routes(service),
        scan_routes(service),
        page_routes(service, token is not None),
    ):
        app.include_router(routes)
    _add_error_answers(app)
    app.add_middleware(Access, limits=limits, token=token)
    return app


async def give_back_memory() -> None:
    """Return freed memory to the system at intervals: glibc would keep the memory of large requests."""
    trim = (
        getattr(ctypes.CDLL(None), "malloc_trim", None)
        if sys.platform == "linux"
        else None
    )
    while trim:  # only glibc has it
        await asyncio.sleep(TRIM_SECONDS)
        await asyncio.to_thread(trim, 0)


def _add_status_routes(app: FastAPI, service: Service) -> None:
    @app.get("/health", tags=["status"])
    async def health() -> dict[str, str]:
        if not service.queue.alive:
            raise RefusedError(
                503, "a thread that reads has ended; restart the server", retry_after=5
            )
        return {"status": "ok"}

    @app.get("/ready", tags=["status"])
    async def ready() -> dict[str, str]:
        await health()
        if service.queue.waiting >= service.limits.waiting_requests:
            raise RefusedError(503, "too many requests are waiting", retry_after=1)
        return {"status": "ready"}

    @app.get("/v1/models", tags=["status"])
    async def models() -> dict[str, Any]:
        return {"object": "list", "data": [service.describe()]}


def _add_error_answers(app: FastAPI) -> None:
    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        return refusal(error)

    @app.exception_handler(RequestValidationError)
    async def no_json(request: Request, error: RequestValidationError) -> Response:
        return refusal(invalid(error.errors()))

    @app.exception_handler(ScanCancelled)
    async def client_left(request: Request, error: ScanCancelled) -> Response:
        return Response(status_code=499)  # nobody receives it


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
                request,
                lambda check: [
                    _first_tokens(tokenizer, text, most, check) for text in texts
                ],
            )
        results = await service.read(service.pairs(body.query, texts), request)
        version = request.url.path.split("/")[1].removeprefix("v")
        return await _json(lambda: _as_cohere(body, rank_results(results), version))

    @routes.post("/rerank")
    async def tei(body: TeiRerank, request: Request) -> Response:
        results = await service.read(service.pairs(body.query, body.texts), request)
        return await _json(
            lambda: [_as_tei(body, one) for one in rank_results(results)]
        )

    return routes


def scan_routes(service: Service) -> APIRouter:
    """The routes ``scan``, ``score``, ``segment``, ``count_tokens`` and ``collections`` below ``/v1``."""
    routes = APIRouter(prefix="/v1", tags=["scan"], route_class=BoundedRoute)

    @routes.post("/scan")
    async def scan(body: Scan, request: Request) -> Response:
        _check_one_of("text and documents", body.text, body.documents)
        given = body.model_dump(
            include={"top_k", "threshold", "max_tokens", "context", "order", "merge"}
        )
        try:  # before anything is read
            selection = Selection(**given)
        except ValueError as error:
            raise RefusedError(422, str(error)) from None
        requests = service.pairs(
            body.query, (body.documents or []) if body.text is None else [body.text]
        )
        if not body.stream:
            results = await service.read(requests, request)
            return await _json(lambda: _described(body.query, results, selection))

        async def described(results: list[ScanResult]) -> dict[str, Any]:
            return {
                "result": await asyncio.to_thread(
                    _described, body.query, results, selection
                )
            }

        return await service.read_in_lines(requests, request, described)

    @routes.post("/score")
    async def score(body: Score, request: Request) -> Response:
        requests = await asyncio.to_thread(_scored_requests, service, body)
        together = body.together and body.collection is None
        results = await service.read(requests, request, together=together)
        return await _json(lambda: {"logits": [one.logits.tolist() for one in results]})

    @routes.post("/segment")
    async def segment(body: SeveralTexts, request: Request) -> Response:
        service.check_size([len(text) for text in body.texts])
        cut = service.scanner.reading.cut
        units = await service.work(
            request,
            lambda check: [cut(text, check) for text in body.texts],
            service.cutter,
        )
        return await _json(lambda: {"units": units})

    @routes.post("/count_tokens")
    async def count_tokens(body: SeveralTexts, request: Request) -> Response:
        service.check_size([len(text) for text in body.texts])
        pieces = partial(_pieces, service.scanner.checkpoint.tokenizer)
        tokens = await service.work(
            request,
            lambda check: [
                sum(len(ids) for ids, _ in pieces(text, check)) for text in body.texts
            ],
        )
        return await _json(lambda: {"tokens": tokens})

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


def page_routes(service: Service, needs_token: bool) -> APIRouter:
    """The routes ``/``, ``/v1/prepare`` and ``/v1/page``: a document with its best sentences marked."""
    routes = APIRouter(tags=["page"], route_class=BoundedRoute)
    # The page has nothing secret. Its policy also applies to the report in it, so it
    # allows what the report needs.
    page = render(
        "serving/front_page",
        "spscanner",
        also_allowed=REPORT,
        more_policy="; connect-src 'self'; frame-src blob:; img-src data:",
        needs_token=needs_token,
    )
    headers = {
        "content-security-policy": "frame-ancestors 'none'",
        "x-content-type-options": "nosniff",
    }

    @routes.get("/", response_class=HTMLResponse)
    async def front() -> HTMLResponse:
        return HTMLResponse(page, headers=headers)

    @routes.post("/v1/prepare", status_code=204)
    async def prepare(body: Given, request: Request) -> Response:
        document, units = await _cut_document(service, body, request)
        await service.read(
            [ScanRequest("", document.text, units)], request, asked=False
        )
        return Response(status_code=204)

    @routes.post("/v1/page", response_model=None)
    async def scanned(body: Page, request: Request) -> StreamingResponse:
        document, units = await _cut_document(service, body, request)
        service.check_size([characters_of(document.text, units)], len(body.query))
        requests = [service.checked(body.query, document.text, units)]

        async def rendered(results: list[ScanResult]) -> dict[str, Any]:
            (shown,) = select_together(
                [document], results, Selection(top_k=body.top_k, order="score")
            )
            pictures: list[Picture] = []
            with suppress(RefusedError):  # an answer without pictures is still useful
                pictures = await service.work(request, partial(_pictures, body, shown))
            model = service.scanner.checkpoint.source
            page = partial(
                render_report,
                body.query,
                model,
                [shown],
                pictures=pictures,
                inside=True,
            )
            return {"page": await asyncio.to_thread(page)}

        return await service.read_in_lines(requests, request, rendered)

    return routes


async def _json(answer: Callable[[], Any]) -> Response:
    """Make and encode an answer in a thread, because it may be large."""
    return Response(
        await asyncio.to_thread(lambda: to_json(answer())),
        media_type="application/json",
    )


def _as_cohere(
    body: CohereRerank, ranked: list[RankedDocument], version: str
) -> dict[str, Any]:
    results = []
    for one in ranked[: body.top_n]:
        result: dict[str, Any] = {"index": one.number, "relevance_score": one.score}
        if body.return_documents:
            document = body.documents[one.number]
            result["document"] = (
                {"text": document} if isinstance(document, str) else document
            )
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
    """The texts of documents: their fields, joined after a check of the total size."""
    names = body.rank_fields or ["text"]
    parts = [
        _fields(document, names, number)
        for number, document in enumerate(body.documents)
    ]
    service.check_size([sum(map(len, fields)) for fields in parts], len(body.query))
    return ["\n".join(fields) for fields in parts]


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


def _scored_requests(service: Service, body: Score) -> list[ScanRequest]:
    asked = [(one, _units(one, number)) for number, one in enumerate(body.requests)]
    service.check_size(
        [len(one.query) + characters_of(one.text, own) for one, own in asked]
    )
    return [
        service.checked(one.query, one.text, own, body.collection) for one, own in asked
    ]


def _units(one: UnitsOfText, number: int) -> list[Unit]:
    """The units of a text; ``RefusedError`` if they overlap or exceed it."""
    before = 0
    for start, end, _ in one.units:
        if not before <= start < end <= len(one.text):
            raise RefusedError(
                422,
                f"requests.{number}.units: {start} to {end} overlaps the previous unit"
                " or exceeds the text",
            )
        before = end
    whole = units_of(one.text, [(start, end) for start, end, _ in one.units])
    return [
        unit if model_text is None else unit._replace(model_text=model_text)
        for unit, (_, _, model_text) in zip(whole, one.units, strict=True)
    ]


def _described(
    query: str, results: list[ScanResult], selection: Selection
) -> dict[str, Any]:
    return {
        "query": query,
        "documents": [
            {
                "index": number,
                "score": RankedDocument(number, result.document_score(), result).score,
                "sentences": len(result.logits),
                "answerable": result.answerable,
                "passages": [
                    {
                        "start": one.start,
                        "end": one.end,
                        "score": one.score,
                        "text": one.text,
                    }
                    for one in result.selected(selection)
                ],
            }
            for number, result in enumerate(results)
        ],
    }


def _pieces(
    tokenizer: Tokenizer, text: str, check: Callable[[], None]
) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """The token ids and offsets of a text in bounded memory.

    ``check``, called between pieces, may raise.
    """
    for piece in tokenize_in_pieces(tokenizer, text):
        check()
        yield piece


def _first_tokens(
    tokenizer: Tokenizer, text: str, most: int, check: Callable[[], None]
) -> str:
    """The first ``most`` tokens of a text, as text."""
    for ids, offsets in _pieces(tokenizer, text, check):
        if len(ids) >= most:
            return text[: int(offsets[most - 1, 1])]
        most -= len(ids)
    return text


def _check_one_of(names: str, first: object, second: object) -> None:
    if (first is None) == (second is None):
        raise RefusedError(422, f"got both or neither of {names}; expected one of them")


async def _cut_document(
    service: Service, given: Given, request: Request
) -> CutDocument:
    """The document and its units, from an earlier request if they were kept, else read now."""
    _check_one_of("text and file", given.text, given.file)
    key = await service.work(request, lambda _: _digest(given))
    if kept := service.documents.get(key):
        return kept
    document = await service.work(request, partial(_read, given))
    service.check_size([len(document.text)])
    units = await service.work(
        request, partial(_cut, service, document), service.cutter
    )
    service.check_size(
        [characters_of(document.text, units)]
    )  # rows of a table repeat its headers
    words = 0 if document.words is None else document.words.nbytes
    size = (
        words
        + 8 * len(document.text)
        + _BYTES_EACH * (len(units) + len(document.blocks))
    )
    service.documents.put(key, (document, units), size)
    return document, units


def _digest(given: Given) -> str:
    own = (
        sha256((part or "").encode()).digest()
        for part in (given.name, given.file, given.text)
    )
    return sha256(b"".join(own)).hexdigest()


def _read(given: Given, check: Callable[[], None]) -> TextFile:
    if given.file is None:
        return TextFile(PASTED, given.text or "")
    try:
        data = base64.b64decode(given.file, validate=True)
        return read_bytes(given.name or "document", data, check=check)
    except binascii.Error as error:
        raise RefusedError(422, f"file: not base64 ({error}); encode it") from None
    except (ValueError, ImportError) as error:
        raise RefusedError(422, one_line(str(error))) from None


def _cut(
    service: Service, document: TextFile, check: Callable[[], None]
) -> Sequence[Unit]:
    reading = service.scanner.reading
    if not document.blocks:
        return reading.cut(document.text, check)
    return reading.cut_blocks(document.text, document.blocks, check)


def _pictures(
    body: Page, shown: ScannedDocument, check: Callable[[], None]
) -> list[Picture]:
    if shown.document.words is None or body.file is None:
        return []
    boxes = [shown.document.boxes(pick.start, pick.end) for pick in shown.picks]
    return pictures_of(base64.b64decode(body.file), boxes, check)
