"""The ASGI application: its routes and its errors. Any ASGI server runs it, as one process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from spscanner_rag.apps.serving.access import Access
from spscanner_rag.apps.serving.limits import Limits, RefusedError, refusal
from spscanner_rag.apps.serving.memory import give_back_memory
from spscanner_rag.apps.serving.page_routes import page_routes
from spscanner_rag.apps.serving.routes import rerank_routes, scan_routes
from spscanner_rag.apps.serving.schemas import invalid
from spscanner_rag.apps.serving.service import Service
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import ScanCancelled


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
        giving_back = asyncio.create_task(give_back_memory())
        yield
        giving_back.cancel()
        await asyncio.to_thread(service.close)

    # The pages of interactive documentation load scripts of other hosts, so there are none.
    app = FastAPI(title="spscanner-rag", version="1", lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.service = service
    _add_status_routes(app, service)
    app.include_router(rerank_routes(service))
    app.include_router(scan_routes(service))
    app.include_router(page_routes(service, needs_token=token is not None))
    _add_error_answers(app)
    app.add_middleware(Access, limits=limits, token=token)
    return app


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
