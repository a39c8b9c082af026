"""The limits of a server, and the answer to a request that is refused."""

from dataclasses import dataclass, fields

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that a server accepts, each above 0, and the status of what is beyond it."""

    body_bytes: int = 16 * 2**20  # of a request; a larger one gets 413 before it is read to its end
    request_characters: int = 4_000_000  # of all texts, the question with each: about a million tokens; 413
    documents: int = 2_000  # texts of a request; 413
    waiting_requests: int = 256  # that nobody reads yet; a further one gets 429 and ``Retry-After``
    waiting_characters: int = 64_000_000  # of all requests that wait or are being read; 429
    seconds: float = 120.0  # from a request's arrival to its answer; then 504
    transfer_seconds: float = 30.0  # in which a body arrives (408), and a client takes each part of an answer

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            whole = field.type is int
            if type(value) not in ((int,) if whole else (int, float)) or not 0 < value < float("inf"):
                kind = "a whole number" if whole else "a number"
                raise ValueError(f"{field.name} is {value!r}; expected {kind} above 0")


class RefusedError(HTTPException):
    """A request without an answer: HTTP status, message (with no text of the request), seconds to wait."""

    def __init__(self, status: int, message: str, retry_after: int | None = None) -> None:
        headers = {} if retry_after is None else {"retry-after": str(retry_after)}
        if status == 401:
            headers["www-authenticate"] = "Bearer"
        super().__init__(status, message, headers)


def refusal(error: HTTPException) -> JSONResponse:
    """Return the answer to a refused request, in a form that clients of Cohere and of TEI understand."""
    status = error.status_code
    kind = "overloaded" if status == 429 else "backend" if status >= 500 else "validation"
    content = {"message": error.detail, "error": error.detail, "error_type": kind}
    return JSONResponse(content, status, error.headers)
