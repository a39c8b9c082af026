"""Errors as answers, in a form that clients of Cohere and of text-embeddings-inference understand."""

import numpy as np
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from spscanner_rag.apps.serving.limits import RefusedError
from spscanner_rag.results.selection import sigmoid
from spscanner_rag.scorers import ScanCancelled

_TYPES = {401: "unauthenticated", 404: "not_found", 413: "validation", 422: "validation", 429: "overloaded"}


def relevance(score: float) -> float:
    """A document's score as a number from 0 to 1, as clients expect it."""
    return float(sigmoid(np.array([score]))[0])


def refusal(error: RefusedError) -> JSONResponse:
    """The answer to a request that was refused."""
    headers = {} if error.retry_after is None else {"retry-after": str(error.retry_after)}
    if error.status == 401:
        headers["www-authenticate"] = "Bearer"
    kind = _TYPES.get(error.status, "backend" if error.status >= 500 else "request")
    content = {"message": error.message, "error": error.message, "error_type": kind}
    return JSONResponse(content, error.status, headers)


async def refused(request: Request, error: Exception) -> Response:
    """Handle `RefusedError`."""
    assert isinstance(error, RefusedError)
    return refusal(error)


async def invalid(request: Request, error: Exception) -> Response:
    """Handle a body that does not fit. What was sent is not repeated: it may be large, private, or no Unicode."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"][1:]) or "the body"
    more = f" (and {len(error.errors()) - 1} more)" if len(error.errors()) > 1 else ""
    return refusal(RefusedError(422, f"{place[:200]}: {first['msg'][:200]}{more}"))


async def http_error(request: Request, error: Exception) -> Response:
    """Handle an unknown path or method."""
    assert isinstance(error, HTTPException)
    return refusal(RefusedError(error.status_code, str(error.detail)))


async def left(request: Request, error: Exception) -> Response:
    """Handle `ScanCancelled`: nobody takes the answer."""
    assert isinstance(error, ScanCancelled)
    return Response(status_code=499)
