"""Checks each request before the application gets it, and records how it ended."""

import asyncio
import hmac
import json
import logging
import re
import time
from datetime import UTC, datetime
from uuid import uuid4

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from spscanner_rag.apps.serving.limits import Limits, RefusedError, refusal
from spscanner_rag.apps.serving.metrics import Metrics

access_log = logging.getLogger("spscanner_rag.access")
"""One line of JSON for each request, without texts and query strings."""

OPEN = frozenset({"/", "/health", "/ready"})
"""Paths that need no token: the page has nothing secret, and a load balancer has no
token. ``/metrics`` needs it, because it tells how much a server is used."""

OTHER = "other"
"""The path of a request that no route answers, in the log and in the metrics."""

_LOCAL_HOST = re.compile(
    r"(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?", re.IGNORECASE | re.ASCII
)


class Access:
    """ASGI middleware around the whole application.

    Clients must send ``Authorization: Bearer TOKEN``.

    Without a token, only requests whose ``Host`` is this machine are answered, so that
    a page of another site cannot send requests through a name that points here.
    """

    def __init__(
        self, app: ASGIApp, limits: Limits, metrics: Metrics, token: str | None = None
    ) -> None:
        self.app = app
        self.limits = limits
        self.metrics = metrics
        self.token = token
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
                deadline = time.monotonic() + self.limits.seconds
                scope.setdefault("state", {})["deadline"] = deadline
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
            _check_host(headers)
        elif path not in OPEN:
            _check_token(headers, self.token)
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
        parts: list[bytes] = []
        has_more = True
        seconds = self.limits.transfer_seconds
        end = asyncio.get_running_loop().time() + seconds
        while has_more:
            try:
                async with asyncio.timeout_at(end):
                    message = await receive()
            except TimeoutError:
                raise RefusedError(
                    408, f"the body did not arrive within {seconds:g} s"
                ) from None
            if message["type"] == "http.disconnect":
                raise _ClientLeft
            part = message.get("body", b"")
            parts.append(part)
            answer.received += len(part)
            self._arriving += len(part)
            if self._arriving > max(answer.received, self.limits.waiting_characters):
                raise RefusedError(
                    429,
                    "too many requests are arriving; ask again in 1 s",
                    retry_after=1,
                )
            if answer.received > self.limits.body_bytes:
                raise self._too_large()
            has_more = message.get("more_body", False)
        return b"".join(parts)

    def _too_large(self) -> RefusedError:
        limit = self.limits.body_bytes
        return RefusedError(
            413, f"the body is larger than {limit} bytes; split the request"
        )

    def _record(self, scope: Scope, answer: "_Answer", seconds: float) -> None:
        client = scope.get("client")
        path = getattr(scope.get("route"), "path", OTHER)
        status = answer.status or 500
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "id": str(uuid4()),
            "client": client[0] if client else None,
            "method": scope["method"],
            "path": path,
            "status": status,
            "milliseconds": round(seconds * 1000, 1),
            "bytes_received": answer.received,
            "bytes_sent": answer.sent,
        }
        access_log.info("%s", json.dumps(line))
        self.metrics.add_request(path, status, seconds)


def _check_host(headers: Headers) -> None:
    hosts = headers.getlist("host")
    if len(hosts) != 1 or not _LOCAL_HOST.fullmatch(hosts[0]):
        raise RefusedError(
            421,
            "this server has no token and answers only as localhost or 127.0.0.1",
        )


def _check_token(headers: Headers, token: str) -> None:
    authorization = ",".join(headers.getlist("authorization")).encode("latin-1")
    if not hmac.compare_digest(authorization, b"Bearer " + token.encode()):
        raise RefusedError(
            401, "send the server's token as: Authorization: Bearer TOKEN"
        )


class _ClientLeft(Exception):  # noqa: N818
    """The client closed the connection."""


class _Answer:
    """Sends an answer, and counts the bytes sent and received.

    It gives up on a client that does not take the answer.
    """

    def __init__(self, send: Send, seconds: float) -> None:
        self._send = send
        self._seconds = seconds
        self.status = 0
        self.sent = 0
        self.received = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        self.sent += len(message.get("body", b""))
        try:
            await asyncio.wait_for(self._send(message), self._seconds)
        except (TimeoutError, OSError):
            raise _ClientLeft from None


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A ``receive`` that first repeats the body, then passes on other messages."""
    again: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        if again:
            return again.pop()
        return await receive()

    return replay
