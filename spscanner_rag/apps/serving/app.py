"""The ASGI application: its routes and its errors. Any ASGI server runs it, as one process."""

import asyncio
import ctypes
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from spscanner_rag.apps.serving.access import Access, Limits, RefusedError, refusal
from spscanner_rag.apps.serving.routes import page_routes, rerank_routes, scan_routes
from spscanner_rag.apps.serving.schemas import invalid
from spscanner_rag.apps.serving.service import Service
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import ScanCancelled

TRIM_SECONDS = 1.0


def create_app(scanner: Scanner, *, token: str | None = None, limits: Limits | None = None) -> FastAPI:
    """The application of a scanner; ``ValueError`` for a token that is empty or not ASCII.

    Without a token, only requests to this machine's own names are answered.
    """
    if token is not None and not (token.isascii() and token.isprintable() and token.strip() == token != ""):
        raise ValueError("the token is empty or has characters other than printable ASCII")
    limits = limits or Limits()
    service = Service(scanner, limits)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        trimming = asyncio.create_task(give_back_memory())
        yield
        trimming.cancel()
        await asyncio.to_thread(service.close)

    # The pages of interactive documentation load scripts of other hosts, so there are none.
    app = FastAPI(title="spscanner-rag", version="1", lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.service = service
    _add_status_routes(app, service)
    for routes in (rerank_routes(service), scan_routes(service), page_routes(service, token is not None)):
        app.include_router(routes)
    _add_error_answers(app)
    app.add_middleware(Access, limits=limits, token=token)
    return app


async def give_back_memory() -> None:
    """Give freed memory back to the system: glibc would keep what each of many large requests left."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    while trim:  # other C libraries have none
        await asyncio.sleep(TRIM_SECONDS)
        await asyncio.to_thread(trim, 0)


def _add_status_routes(app: FastAPI, service: Service) -> None:
    @app.get("/health", tags=["status"])
    async def health() -> dict[str, str]:
        if not service.queue.alive:
            raise RefusedError(503, "a thread that reads has ended; restart the server", retry_after=5)
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
        return Response(status_code=499)  # nobody takes the answer
