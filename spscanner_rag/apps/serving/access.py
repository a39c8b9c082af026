"""Controls access: the token, limits of size and time, idle connections, and the log."""

import asyncio
import hmac
import json
import logging
import re
import time
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from uuid import uuid4

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

access_log = logging.getLogger("spscanner_rag.access")
"""One line of JSON for each request, without texts and query strings."""

OPEN = frozenset({"/", "/health", "/ready"})
"""Paths that need no token: the page has nothing secret, and a load balancer has no
token."""

_LOCAL_HOST = re.compile(
    r"(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?", re.IGNORECASE | re.ASCII
)

SILENT_SECONDS = 10.0
"""A connection is closed if no complete request headers arrive within this time."""

SILENT_OF_ADDRESS, SILENT = 128, 512
"""Most idle connections of one client, and of all clients; beyond them, a new one
replaces the oldest."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that a server accepts, each above 0, and the status code for more."""

    body_bytes: int = (
        16 * 2**20
    )  # of a request; a larger body gets 413 before it is read completely
    request_characters: int = (
        4_000_000  # of all texts, each with the question, about a million tokens; 413
    )
    documents: int = 2_000  # texts in a request; 413
    waiting_requests: int = (
        256  # not yet being read; a further one gets 429 and ``Retry-After``
    )
    waiting_characters: int = (
        64_000_000  # of all requests that wait or are being read; 429
    )
    seconds: float = 120.0  # from a request's arrival to its answer; 504
    transfer_seconds: float = (
        30.0  # for a body to arrive (408), and a client to take each part of an answer
    )

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            whole = field.type is int
            if type(value) not in (
                (int,) if whole else (int, float)
            ) or not 0 < value < float("inf"):
                kind = "a whole number" if whole else "a number"
                raise ValueError(f"{field.name} is {value!r}; expected {kind} above 0")


class RefusedError(HTTPException):
    """A refused request: HTTP status, message (without texts of the request), and seconds to wait."""

    def __init__(
        self, status: int, message: str, retry_after: int | None = None
    ) -> None:
        headers = {} if retry_after is None else {"retry-after": str(retry_after)}
        if status == 401:
            headers["www-authenticate"] = "Bearer"
        super().__init__(status, message, headers)


def refusal(error: HTTPException) -> JSONResponse:
    """Return the answer to a refused request, in a format that Cohere's and TEI's clients understand."""
    status = error.status_code
    kind = (
        "overloaded" if status == 429 else "backend" if status >= 500 else "validation"
    )
    content = {"message": error.detail, "error": error.detail, "error_type": kind}
    return JSONResponse(content, status, error.headers)


class Access:
    """ASGI middleware around the whole application.

    Clients must send ``Authorization: Bearer TOKEN``.

    Without a token, only requests whose ``Host`` is this machine are answered, so that
    a page of another site cannot send requests through a name that points here.
    """

    def __init__(self, app: ASGIApp, limits: Limits, token: str | None = None) -> None:
        self.app, self.limits, self.token = app, limits, token
        self._arriving = 0  # bytes of bodies in memory

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        answer = _Answer(send, self.limits.transfer_seconds)
        started = time.monotonic()
        try:
            self._check(scope["path"], Headers(scope=scope))
            try:
                body = await self._body(receive, answer)
                scope.setdefault("state", {})["deadline"] = (
                    time.monotonic() + self.limits.seconds
                )
                await self.app(scope, _replayed(body, receive), answer)
            finally:
                self._arriving -= answer.received
        except RefusedError as error:
            await refusal(error)(scope, receive, answer)
        except _ClientLeft:
            answer.status = answer.status or 499
        finally:
            self._record(scope, answer, time.monotonic() - started)

    def _check(self, path: str, headers: Headers) -> None:
        if self.token is None:
            hosts = headers.getlist("host")
            if len(hosts) != 1 or not _LOCAL_HOST.fullmatch(hosts[0]):
                raise RefusedError(
                    421,
                    "this server has no token and answers only as localhost or"
                    " 127.0.0.1",
                )
        elif path not in OPEN:
            given = ",".join(headers.getlist("authorization")).encode("latin-1")
            if not hmac.compare_digest(given, b"Bearer " + self.token.encode()):
                raise RefusedError(
                    401, "send the server's token as: Authorization: Bearer TOKEN"
                )
        encoding = headers.get("content-encoding", "identity")
        if encoding != "identity":
            raise RefusedError(
                415, f"content-encoding is {encoding!r:.40}; send the body uncompressed"
            )
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            raise RefusedError(400, "content-length is not a number")
        if int(length) > self.limits.body_bytes:
            raise self._too_large()

    async def _body(self, receive: Receive, answer: "_Answer") -> bytes:
        """Receive the body.

        All bytes count until they are answered, with the same bound as the queue.
        """
        parts, more, seconds = [], True, self.limits.transfer_seconds
        end = asyncio.get_running_loop().time() + seconds
        while more:
            try:
                async with asyncio.timeout_at(end):
                    message = await receive()
            except TimeoutError:
                raise RefusedError(
                    408, f"the body did not arrive within {seconds:g} s"
                ) from None
            if message["type"] == "http.disconnect":
                raise _ClientLeft
            parts.append(message.get("body", b""))
            answer.received += len(parts[-1])
            self._arriving += len(parts[-1])
            if self._arriving > max(answer.received, self.limits.waiting_characters):
                raise RefusedError(
                    429,
                    "too many requests are arriving; ask again in 1 s",
                    retry_after=1,
                )
            if answer.received > self.limits.body_bytes:
                raise self._too_large()
            more = message.get("more_body", False)
        return b"".join(parts)

    def _too_large(self) -> RefusedError:
        most = self.limits.body_bytes
        return RefusedError(
            413, f"the body is larger than {most} bytes; split the request"
        )

    def _record(self, scope: Scope, answer: "_Answer", seconds: float) -> None:
        client = scope.get("client")
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "id": str(uuid4()),
            "client": client[0] if client else None,
            "method": scope["method"],
            "path": getattr(scope.get("route"), "path", "other"),
            "status": answer.status or 500,
            "milliseconds": round(seconds * 1000, 1),
            "bytes_received": answer.received,
            "bytes_sent": answer.sent,
        }
        access_log.info("%s", json.dumps(line))


class _ClientLeft(Exception):  # noqa: N818
    """The client closed the connection."""


class _Answer:
    """Sends an answer, gives up on a client that does not take it, and counts the bytes sent and received."""

    def __init__(self, send: Send, seconds: float) -> None:
        self._send, self._seconds = send, seconds
        self.status = self.sent = self.received = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        self.sent += len(message.get("body", b""))
        try:
            await asyncio.wait_for(self._send(message), self._seconds)
        except (TimeoutError, OSError):
            raise _ClientLeft from None


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return a ``receive`` that first repeats the body, then passes on messages, such as a disconnect."""
    again: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return again.pop() if again else await receive()

    return replay


def config_of(
    app: Starlette, host: str = "127.0.0.1", port: int = 0, grace: int | None = None
) -> uvicorn.Config:
    """Configure uvicorn with these connections.

    ``grace``: seconds for running requests after a stop signal.
    """
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=_Connection,
        ws="none",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=grace,
    )


class _Connection(H11Protocol):
    """uvicorn's connection, which bounds the size of headers, with a time limit for them."""

    _silent_since: float

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_request()
        silent = sorted(
            (
                one
                for one in self.connections
                if isinstance(one, _Connection) and one._is_silent
            ),
            key=lambda one: one._silent_since,
        )
        own = [
            one
            for one in silent
            if one.client and self.client and one.client[0] == self.client[0]
        ]
        for found, most in ((own, SILENT_OF_ADDRESS), (silent, SILENT)):
            if len(found) > most:
                found[0].transport.close()
                return

    def on_response_complete(self) -> None:
        # before the next line, which may begin a request that has already arrived
        self._wait_for_request()
        super().on_response_complete()

    @property
    def _is_silent(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _wait_for_request(self) -> None:
        self._silent_since = now = time.monotonic()
        self.loop.call_later(SILENT_SECONDS, self._give_up, now)

    def _give_up(self, silent_since: float) -> None:
        if self._is_silent and self._silent_since == silent_since:
            self.transport.close()
