"""The routes of the page in a browser: a document with its best sentences marked."""

import asyncio
import base64
import binascii
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, StreamingResponse

from spscanner_rag.apps.pages.html_page import render
from spscanner_rag.apps.pages.report import REPORT, render_report
from spscanner_rag.apps.pages.scanned_document import ScannedDocument, select_together
from spscanner_rag.apps.serving.bodies import BoundedRoute
from spscanner_rag.apps.serving.json_answers import check_one_of
from spscanner_rag.apps.serving.limits import RefusedError
from spscanner_rag.apps.serving.progress_lines import read_in_lines
from spscanner_rag.apps.serving.reading_queue import characters_of
from spscanner_rag.apps.serving.schemas import DocumentBody, Page
from spscanner_rag.apps.serving.service import PageDocument, Service
from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.formats import accepted_files, formats_in_words
from spscanner_rag.files.readers.pdf_pictures import Picture, pictures_of
from spscanner_rag.files.reading import read_bytes
from spscanner_rag.results import ScanResult, Selection
from spscanner_rag.text.escaping import one_line
from spscanner_rag.text.units import Unit

PASTED = "pasted text"

_BYTES_EACH = 300  # memory of a unit or a block without its text


def page_routes(service: Service, needs_token: bool) -> APIRouter:
    """The routes ``/``, ``/v1/prepare`` and ``/v1/page``."""
    routes = APIRouter(tags=["page"], route_class=BoundedRoute)
    # The page has nothing secret. Its policy also applies to the report in it, so it
    # allows what the report needs.
    front_page = render(
        "serving/front_page",
        "spscanner",
        also_allowed=REPORT,
        more_policy="; connect-src 'self'; frame-src blob:; img-src data:",
        needs_token=needs_token,
        formats=formats_in_words(),
        accepted_files=accepted_files(),
    )
    headers = {
        "content-security-policy": "frame-ancestors 'none'",
        "x-content-type-options": "nosniff",
    }

    @routes.get("/", response_class=HTMLResponse)
    async def front() -> HTMLResponse:
        return HTMLResponse(front_page, headers=headers)

    @routes.post("/v1/prepare", status_code=204)
    async def prepare(body: DocumentBody, request: Request) -> Response:
        document, units = await _page_document(service, body, request)
        await service.prepare(document.text, units, request)
        return Response(status_code=204)

    @routes.post("/v1/page", response_model=None)
    async def page(body: Page, request: Request) -> StreamingResponse:
        document, units = await _page_document(service, body, request)
        service.check_size([characters_of(document.text, units)], len(body.query))
        scan_request = service.checked(body.query, document.text, units)

        async def describe(results: list[ScanResult]) -> dict[str, Any]:
            return {"page": await _rendered(service, body, document, results, request)}

        return await read_in_lines(service, [scan_request], request, describe)

    return routes


async def _rendered(
    service: Service,
    body: Page,
    document: TextFile,
    results: list[ScanResult],
    request: Request,
) -> str:
    selection = Selection(top_k=body.top_k, order="score")
    (scanned,) = select_together([document], results, selection)
    pictures: list[Picture] = []
    with suppress(RefusedError):  # an answer without pictures is still useful
        pictures = await service.work(request, partial(_pictures, body, scanned))
    make_page = partial(
        render_report,
        body.query,
        service.scanner.checkpoint.source,
        [scanned],
        pictures=pictures,
        inside=True,
    )
    return await asyncio.to_thread(make_page)


async def _page_document(
    service: Service, body: DocumentBody, request: Request
) -> PageDocument:
    """The document and its units, from an earlier request if they were kept."""
    check_one_of("text and file", body.text, body.file)
    key = await _key_of(service, body, request)
    kept_document = service.documents.get(key)
    if kept_document is not None:
        return kept_document
    document = await service.work(request, partial(_read_document, body))
    service.check_size([len(document.text)])
    cut = partial(_cut, service, document)
    units = await service.work(request, cut, service.cutter)
    # rows of a table repeat its headers
    service.check_size([characters_of(document.text, units)])
    size = _bytes_of(document) + _BYTES_EACH * len(units)
    service.documents.put(key, (document, units), size)
    return document, units


async def _key_of(service: Service, body: DocumentBody, request: Request) -> str:
    return await service.work(request, lambda _: _digest(body))


def _bytes_of(document: TextFile) -> int:
    size = 8 * len(document.text) + _BYTES_EACH * len(document.blocks)
    if document.words is not None:
        size += document.words.nbytes
    return size


def _digest(body: DocumentBody) -> str:
    digests: list[bytes] = []
    for part in (body.name, body.file, body.text):
        digests.append(sha256((part or "").encode()).digest())
    return sha256(b"".join(digests)).hexdigest()


def _read_document(body: DocumentBody, check: Callable[[], None]) -> TextFile:
    if body.file is None:
        return TextFile(PASTED, body.text or "")
    try:
        data = base64.b64decode(body.file, validate=True)
        return read_bytes(body.name or "document", data, check=check)
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
    body: Page, scanned: ScannedDocument, check: Callable[[], None]
) -> list[Picture]:
    document = scanned.document
    if document.words is None or body.file is None:
        return []
    boxes = [document.boxes(pick.start, pick.end) for pick in scanned.picks]
    return pictures_of(base64.b64decode(body.file), boxes, check)
