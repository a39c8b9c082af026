"""Whose a request is, and whether its client is still there."""

from collections.abc import Awaitable, Callable

from fastapi import Request


def client_of(request: Request) -> str:
    """The client's address, so that one client's requests do not hold up another's."""
    return request.client.host if request.client else ""


def gone(request: Request) -> Callable[[], Awaitable[None]]:
    """A function that returns when the client has gone away; the body must have been read."""

    async def left() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    return left
