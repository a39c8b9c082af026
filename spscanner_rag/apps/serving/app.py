"""The ASGI application: its routes and its errors.

Any ASGI server can run it, in one process.
"""

import asyncio
import ctypes
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from spscanner_rag.apps.serving.access import Access
from spscanner_rag.apps.serving.bodies import invalid
from spscanner_rag.apps.serving.limits import Limits, refusal
from spscanner_rag.apps.serving.page_routes import page_routes
from spscanner_rag.apps.serving.rerank_routes import rerank_routes
from spscanner_rag.apps.serving.scan_routes import scan_routes
from spscanner_rag.apps.serving.service import Service
from spscanner_rag.apps.serving.status_routes import status_routes
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import ScanCancelled

TRIM_SECONDS = 1.0


def create_app(
    scanner: Scanner, *, token: str | None = None, limits: Limits | None = None
) -> FastAPI:
    """Create the application of a scanner.

    ``ValueError`` for a token that is empty or not printable ASCII.

    Without a token, only requests to this machine's own names are answered.
    """
    if token is not None:
        _check_token(token)
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
    for routes in (
        status_routes(service),
        rerank_routes(service),
        scan_routes(service),
        page_routes(service, token is not None),
    ):
        app.include_router(routes)
    _add_error_answers(app)
    app.add_middleware(Access, limits=limits, metrics=service.metrics, token=token)
    return app


def _check_token(token: str) -> None:
    is_printable = token.isascii() and token.isprintable()
    if not is_printable or token == "" or token.strip() != token:
        raise ValueError(
            "the token is empty or has characters other than printable ASCII"
        )


async def give_back_memory() -> None:
    """Return freed memory to the system at intervals.

    glibc would keep the memory of large requests.
    """
    if sys.platform != "linux":
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    while trim is not None:  # only glibc has it
        await asyncio.sleep(TRIM_SECONDS)
        await asyncio.to_thread(trim, 0)


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
