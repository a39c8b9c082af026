"""The ASGI application: routes, errors, access. Any ASGI server runs it, as one process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from spscanner_rag.apps.serving import answers
from spscanner_rag.apps.serving.access import Access
from spscanner_rag.apps.serving.limits import Limits, RefusedError
from spscanner_rag.apps.serving.page_routes import page_routes
from spscanner_rag.apps.serving.rerank_routes import rerank_routes
from spscanner_rag.apps.serving.scan_routes import scan_routes
from spscanner_rag.apps.serving.service import Service
from spscanner_rag.apps.serving.status_routes import status_routes
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import ScanCancelled


def create_app(scanner: Scanner, *, token: str | None = None, limits: Limits | None = None) -> FastAPI:
    """Make the application of a scanner.

    Parameters
    ----------
    scanner : Scanner
    token : str, optional
        What clients must send; without one only requests to this machine's own names are answered.
    limits : Limits, optional

    Raises
    ------
    ValueError
        For a token that is empty or not ASCII.
    """
    if token is not None and not (token.isascii() and token.isprintable() and token.strip() == token != ""):
        raise ValueError("the token is empty or has characters other than printable ASCII")
    limits = limits or Limits()
    service = Service(scanner, limits)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(service.queue.close)

    # The pages of interactive documentation load scripts of other hosts, so there are none.
    app = FastAPI(title="spscanner-rag", version="1", lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.service = service
    for routes in (status_routes, rerank_routes, scan_routes):
        app.include_router(routes(service))
    app.include_router(page_routes(service, token is not None))
    app.add_exception_handler(RefusedError, answers.refused)
    app.add_exception_handler(RequestValidationError, answers.invalid)
    app.add_exception_handler(HTTPException, answers.http_error)
    app.add_exception_handler(ScanCancelled, answers.left)
    app.add_middleware(Access, limits=limits, metrics=service.metrics, token=token)
    return app
