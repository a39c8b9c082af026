"""uvicorn's connections, with limits for those that send nothing."""

import asyncio
import time
from collections.abc import Sequence

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

SILENT_SECONDS = 10.0
"""A connection is closed if no complete request headers arrive within this time."""

SILENT_OF_ADDRESS = 128
"""The most idle connections of one client, where a new one replaces the oldest."""

SILENT = 512
"""The most idle connections of all clients."""


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
    """uvicorn's connection, which bounds the size of headers, with a time for them."""

    silent_since: float

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_request()
        silent = self._silent_connections()
        of_address = [other for other in silent if other.is_of_client(self)]
        if len(of_address) > SILENT_OF_ADDRESS:
            of_address[0].transport.close()
        elif len(silent) > SILENT:
            silent[0].transport.close()

    def _silent_connections(self) -> Sequence["_Connection"]:
        """All idle connections, the longest idle first."""
        silent: list[_Connection] = []
        for connection in self.connections:
            if isinstance(connection, _Connection) and connection.is_silent:
                silent.append(connection)
        silent.sort(key=lambda connection: connection.silent_since)
        return silent

    def is_of_client(self, other: "_Connection") -> bool:
        if not self.client or not other.client:
            return False
        return bool(self.client[0] == other.client[0])

    def on_response_complete(self) -> None:
        # before the next line, which may begin a request that has already arrived
        self._wait_for_request()
        super().on_response_complete()

    @property
    def is_silent(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _wait_for_request(self) -> None:
        now = time.monotonic()
        self.silent_since = now
        self.loop.call_later(SILENT_SECONDS, self._give_up, now)

    def _give_up(self, silent_since: float) -> None:
        if self.is_silent and self.silent_since == silent_since:
            self.transport.close()
