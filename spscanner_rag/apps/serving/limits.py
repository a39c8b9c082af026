"""What a server accepts at most, and how it refuses the rest."""

import math
from dataclasses import dataclass, fields

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that a server accepts, each above 0.

    Parameters
    ----------
    body_bytes : int
        Of a request; a larger body gets 413 before it is read completely.
    request_characters : int
        Of all texts of a request, each with the question, about a million tokens; 413.
    documents : int
        Texts in a request; 413.
    waiting_requests : int
        Requests that are not yet being read; a further one gets 429 and
        ``Retry-After``.
    waiting_characters : int
        Of all requests that wait or are being read; 429.
    seconds : float
        From a request's arrival to its answer; 504.
    transfer_seconds : float
        For a body to arrive (408), and for a client to take each part of an answer.
    """

    body_bytes: int = 16 * 2**20
    request_characters: int = 4_000_000
    documents: int = 2_000
    waiting_requests: int = 256
    waiting_characters: int = 64_000_000
    seconds: float = 120.0
    transfer_seconds: float = 30.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            kind = "a number"
            kinds: tuple[type, ...] = (int, float)
            if field.type is int:
                kind = "a whole number"
                kinds = (int,)
            if type(value) not in kinds or not 0 < value < math.inf:
                raise ValueError(f"{field.name} is {value!r}; expected {kind} above 0")


class RefusedError(HTTPException):
    """A refused request.

    Parameters
    ----------
    status : int
        The HTTP status.
    message : str
        Says why, without texts of the request.
    retry_after : int, optional
        Seconds after which the client should try again.
    """

    def __init__(
        self, status: int, message: str, retry_after: int | None = None
    ) -> None:
        headers: dict[str, str] = {}
        if retry_after is not None:
            headers["retry-after"] = str(retry_after)
        if status == 401:
            headers["www-authenticate"] = "Bearer"
        super().__init__(status, message, headers)


def refusal(error: HTTPException) -> JSONResponse:
    """The answer to a refused request, as clients of Cohere and TEI read it."""
    status = error.status_code
    if status == 429:
        kind = "overloaded"
    elif status >= 500:
        kind = "backend"
    else:
        kind = "validation"
    content = {"message": error.detail, "error": error.detail, "error_type": kind}
    return JSONResponse(content, status, error.headers)
