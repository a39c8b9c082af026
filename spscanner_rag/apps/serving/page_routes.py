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
from spscanner_rag.apps.serving.schemas import DocumentBody, NamedFile, Page
from spscanner_rag.apps.serving.service import PageDocument, Service
from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.formats import accepted_files, formats_in_words
from spscanner_rag.files.readers.pdf_pictures import Picture, pictures_of
from spscanner_rag.files.reading import read_bytes
from spscanner_rag.results import ScanResult, Selection
from spscanner_rag.scan.requests import ScanRequest
from spscanner_rag.text.escaping import one_line
from spscanner_rag.text.units import Unit

PASTED = "pasted text"

EXAMPLE_QUESTION = "How many days of leave do we have?"
EXAMPLE_TEXT = """The handbook of the harbour office

Welcome

New colleagues get a badge and a locker on their first morning. The kitchen on the \
second floor is cleaned every evening. Bicycles may be left in the yard. Visitors sign \
the book at the gate and wear a yellow vest on the quays. Dogs wait outside.

Working hours

The office is open from seven to four. Who keeps the tide tables starts an hour before \
high water. Overtime is written down in the same week. The night watch is drawn by \
lot in December. Nobody works more than two nights in a row.

Time off

Everyone who works full time is entitled to twenty-seven days of paid annual leave. \
Two of them are taken between Christmas and New Year, when the office is closed. \
What is left in March is lost. Who moves house gets one more day. Illness is reported \
to the team leader before nine, and from the third day with a doctor's note.

Travel

Travel is booked through the office in Leeds. Trains are second class. A night away \
is paid with forty pounds, breakfast apart. Receipts are handed in within a month.

Things

Laptops are replaced after four years. Oilskins belong to the harbour and stay in the \
drying room. A lost key costs twelve pounds. The launch is for pilots only, and for \
the doctor. Radios are charged overnight.

Safety

Ropes are checked on the first of each month. Life jackets are worn on the pontoon, \
even in summer. In fog, the bell is rung every two minutes. The assembly point is the \
weighbridge."""
"""A document and a question for who wants to see what the page does."""

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
        example_text=EXAMPLE_TEXT,
        example_question=EXAMPLE_QUESTION,
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
        for document, units in await _page_documents(service, body, request):
            await service.prepare(document.text, units, request)
        return Response(status_code=204)

    @routes.post("/v1/page", response_model=None)
    async def page(body: Page, request: Request) -> StreamingResponse:
        pairs = await _page_documents(service, body, request)
        sizes: list[int] = []
        scan_requests: list[ScanRequest] = []
        for document, units in pairs:
            sizes.append(characters_of(document.text, units))
            scan_requests.append(service.checked(body.query, document.text, units))
        service.check_size(sizes, len(body.query))
        documents = [document for document, _ in pairs]

        async def describe(results: list[ScanResult]) -> dict[str, Any]:
            return {"page": await _rendered(service, body, documents, results, request)}

        return await read_in_lines(service, scan_requests, request, describe)

    return routes


async def _rendered(
    service: Service,
    body: Page,
    documents: Sequence[TextFile],
    results: list[ScanResult],
    request: Request,
) -> str:
    selection = Selection(top_k=body.top_k, order="score")
    scanned = select_together(documents, results, selection)
    pictures: list[Picture] = []
    with suppress(RefusedError):  # an answer without pictures is still useful
        pictures = await service.work(request, partial(_pictures, body, scanned))
    make_page = partial(
        render_report,
        body.query,
        service.scanner.checkpoint.source,
        scanned,
        pictures=pictures,
        inside=True,
    )
    return await asyncio.to_thread(make_page)


async def _page_documents(
    service: Service, body: DocumentBody, request: Request
) -> list[PageDocument]:
    """The documents and their units, from earlier requests if they were kept."""
    check_one_of("text, file and files", body.text, body.file, body.files)
    sources: list[NamedFile | str] = list(body.files or [])
    if body.text is not None:
        sources = [body.text]
    if body.file is not None:
        sources = [NamedFile(file=body.file, name=body.name)]
    documents: list[PageDocument] = []
    for source in sources:
        documents.append(await _page_document(service, source, request))
    service.check_size([characters_of(doc.text, units) for doc, units in documents])
    return documents


async def _page_document(
    service: Service, source: NamedFile | str, request: Request
) -> PageDocument:
    key = await service.work(request, lambda _: _digest(source))
    kept_document = service.documents.get(key)
    if kept_document is not None:
        return kept_document
    document = await service.work(request, partial(_read_document, source))
    service.check_size([len(document.text)])
    cut = partial(_cut, service, document)
    units = await service.work(request, cut, service.cutter)
    # rows of a table repeat its headers
    service.check_size([characters_of(document.text, units)])
    size = _bytes_of(document) + _BYTES_EACH * len(units)
    service.documents.put(key, (document, units), size)
    return document, units


def _bytes_of(document: TextFile) -> int:
    size = 8 * len(document.text) + _BYTES_EACH * len(document.blocks)
    if document.words is not None:
        size += document.words.nbytes
    return size


def _digest(source: NamedFile | str) -> str:
    if isinstance(source, str):
        parts = ["text", source]
    else:
        parts = [f"file {source.name}", source.file]
    digests = [sha256(part.encode()).digest() for part in parts]
    return sha256(b"".join(digests)).hexdigest()


def _read_document(source: NamedFile | str, check: Callable[[], None]) -> TextFile:
    """A pasted text, or what a file holds.

    ``RefusedError`` if it cannot be read.
    """
    if isinstance(source, str):
        return TextFile(PASTED, source)
    try:
        data = base64.b64decode(source.file, validate=True)
        return read_bytes(source.name or "document", data, check=check)
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
    body: Page, scanned: Sequence[ScannedDocument], check: Callable[[], None]
) -> list[Picture]:
    """The pages of a PDF with its picks.

    None if there are several documents.
    """
    document = scanned[0].document
    if document.words is None or body.file is None:
        return []
    boxes = [document.boxes(pick.start, pick.end) for pick in scanned[0].picks]
    return pictures_of(base64.b64decode(body.file), boxes, check)
