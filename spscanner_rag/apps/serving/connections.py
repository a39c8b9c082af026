"""The connections of a server: those that ask nothing keep nobody out."""

import asyncio
import time

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

SILENT_SECONDS = 10.0
"""A connection is closed when no request has arrived with all its headers in this time."""

SILENT_OF_ADDRESS, SILENT = 128, 512
"""So many connections of one client, and of all, may ask nothing; then a new one replaces the oldest of them."""


def config_of(
    app: Starlette, host: str = "127.0.0.1", port: int = 0, grace: int | None = None
) -> uvicorn.Config:
    """Uvicorn with these connections; ``grace`` is its time for running requests after a signal to end."""
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
    """uvicorn's, whose headers are bounded in size but not in time."""

    _silent_since: float

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_request()
        silent = sorted(
            (one for one in self.connections if isinstance(one, _Connection) and one._is_silent),
            key=lambda one: one._silent_since,
        )
        own = [one for one in silent if one._address == self._address]
        for found, most in ((own, SILENT_OF_ADDRESS), (silent, SILENT)):
            if len(found) > most:
                found[0].transport.close()
                return

    def on_response_complete(self) -> None:
        self._wait_for_request()  # first: a request that has arrived meanwhile begins in the next line
        super().on_response_complete()

    @property
    def _is_silent(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    @property
    def _address(self) -> str | None:
        return self.client[0] if self.client else None

    def _wait_for_request(self) -> None:
        self._silent_since = now = time.monotonic()
        self.loop.call_later(SILENT_SECONDS, self._give_up, now)

    def _give_up(self, silent_since: float) -> None:
        if self._is_silent and self._silent_since == silent_since:
            self.transport.close()
