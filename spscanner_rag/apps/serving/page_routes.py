"""The page at ``/``: ask a question of a document, and see its best sentences in place."""

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

from spscanner_rag.apps.pages.html_page import page_style, render, resource
from spscanner_rag.apps.pages.report import render_report, report_script, report_style
from spscanner_rag.apps.pages.scanned_document import ScannedDocument, select_together
from spscanner_rag.apps.serving.limits import RefusedError
from spscanner_rag.apps.serving.schemas import BoundedRoute, Given, Page
from spscanner_rag.apps.serving.service import CutDocument, Service
from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.pdf_passages import Picture, pictures_of
from spscanner_rag.files.reading import read_bytes
from spscanner_rag.results import Selection
from spscanner_rag.scan.pipeline import ScanRequest, Scored
from spscanner_rag.text.escaping import one_line
from spscanner_rag.text.units import Unit

PASTED = "pasted text"
_BYTES_EACH = 300  # of a unit or a block, without its text


def page_routes(service: Service, needs_token: bool) -> APIRouter:
    """The routes ``/``, ``/v1/prepare`` and ``/v1/page``."""
    routes = APIRouter(tags=["page"], route_class=BoundedRoute)
    page = front_page(needs_token)
    headers = {"content-security-policy": "frame-ancestors 'none'", "x-content-type-options": "nosniff"}

    @routes.get("/", response_class=HTMLResponse)
    async def front() -> HTMLResponse:
        return HTMLResponse(page, headers=headers)

    @routes.post("/v1/prepare", status_code=204)
    async def prepare(body: Given, request: Request) -> Response:
        document, units = await _cut_document(service, body, request)
        await service.read([ScanRequest("", document.text, units)], request, asked=False)
        return Response(status_code=204)

    @routes.post("/v1/page", response_model=None)
    async def scanned(body: Page, request: Request) -> StreamingResponse:
        document, units = await _cut_document(service, body, request)
        service.check_size([len(document.text)], len(body.query))
        requests = [service.checked(body.query, document.text, units)]

        async def rendered(scored: list[Scored]) -> dict[str, Any]:
            (result,) = service.results(scored)
            (shown,) = select_together([document], [result], Selection(top_k=body.top_k, order="score"))
            pictures: list[Picture] = []
            with suppress(RefusedError):  # an answer without pictures is one
                pictures = await service.work(request, partial(_pictures, body, shown))
            model = service.scanner.checkpoint.source
            page = partial(render_report, body.query, model, [shown], pictures=pictures, inside=True)
            return {"page": await asyncio.to_thread(page)}

        return await service.read_in_lines(requests, request, rendered)

    return routes


def front_page(needs_token: bool) -> str:
    """The page, with a field for the token if the server has one. It holds nothing secret.

    Its policy also binds the report that it shows, so it allows the report's style, script and pictures.
    """
    return render(
        "serving/front_page.html",
        "spscanner",
        page_style("serving/front_page.css"),
        resource("serving/front_page.js"),
        also_allowed=[(report_style(), report_script())],
        more_policy="; connect-src 'self'; frame-src blob:; img-src data:",
        needs_token=needs_token,
    )


async def _cut_document(service: Service, given: Given, request: Request) -> CutDocument:
    """The document and its units, as they were kept for the last request or else read now."""
    if (given.text is None) == (given.file is None):
        raise RefusedError(422, "got both or neither of text and file; expected one of them")
    key = await service.work(request, lambda _: _digest(given))
    if kept := service.documents.get(key):
        return kept
    document = await service.work(request, partial(_read, given))
    service.check_size([len(document.text)])
    units = await service.work(request, partial(_cut, service, document), service.cutter)
    words = 0 if document.words is None else document.words.nbytes
    size = words + 8 * len(document.text) + _BYTES_EACH * (len(units) + len(document.blocks))
    service.documents.put(key, (document, units), size)
    return document, units


def _digest(given: Given) -> str:
    own = (sha256((part or "").encode()).digest() for part in (given.name, given.file, given.text))
    return sha256(b"".join(own)).hexdigest()


def _read(given: Given, check: Callable[[], None]) -> TextFile:
    if given.file is None:
        return TextFile(PASTED, given.text or "")
    try:
        data = base64.b64decode(given.file, validate=True)
        return read_bytes(given.name or "document", data, check=check)
    except binascii.Error as error:
        raise RefusedError(422, f"file: got no base64 ({error})") from None
    except (ValueError, ImportError) as error:
        raise RefusedError(422, one_line(str(error))) from None


def _cut(service: Service, document: TextFile, check: Callable[[], None]) -> Sequence[Unit]:
    reading = service.scanner.reading
    if not document.blocks:
        return reading.cut(document.text, check)
    return reading.cut_blocks(document.text, document.blocks, check)


def _pictures(body: Page, shown: ScannedDocument, check: Callable[[], None]) -> list[Picture]:
    if shown.document.words is None or body.file is None:
        return []
    boxes = [shown.document.boxes(pick.start, pick.end) for pick in shown.picks]
    return pictures_of(base64.b64decode(body.file), boxes, check)
