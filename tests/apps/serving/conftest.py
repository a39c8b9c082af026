"""A real server on this machine, with a tiny scanner."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from starlette.applications import Starlette

from spscanner_rag import Scanner
from spscanner_rag.apps.serving.app import create_app
from spscanner_rag.apps.serving.connections import config_of
from spscanner_rag.apps.serving.limits import Limits
from spscanner_rag.apps.serving.reading_queue import ReadingQueue
from spscanner_rag.apps.serving.service import Service

POSTED = (
    "POST {} HTTP/1.1\r\nhost: localhost\r\ncontent-type:"
    " application/json\r\ncontent-length: {}\r\n\r\n"
)


def connected(client: httpx.Client, data: bytes = b"") -> socket.socket:
    """A client's connection to the server, over which some bytes were sent."""
    assert client.base_url.port is not None
    connection = socket.create_connection(
        ("127.0.0.1", client.base_url.port), timeout=30
    )
    connection.sendall(data)
    return connection


def wait_until(holds: Callable[[], bool], seconds: float = 30) -> None:
    """Wait for another thread's work."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


class Asking(httpx.Client):
    """A client of a server in this process, which a test can inspect."""

    app: FastAPI
    queue: ReadingQueue
    server: Service


@contextmanager
def running(app: Starlette) -> Iterator[str]:
    """Run an application until the block ends; yields its address."""
    # A test may leave half a request behind, for which a server waits when it stops.
    server = uvicorn.Server(config_of(app, grace=10))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
        assert thread.is_alive()
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def client_of(app: Starlette) -> Iterator[httpx.Client]:
    """Run an application until the block ends; yields a client."""
    with running(app) as url, httpx.Client(base_url=url, timeout=60) as asking:
        yield asking


@pytest.fixture(scope="package")
def address(tiny_scanner: Scanner) -> Iterator[str]:
    """A server with the default limits.

    A test that uses it is marked ``allow_hosts(["127.0.0.1"])``.
    """
    with running(create_app(tiny_scanner)) as url:
        yield url


@pytest.fixture
def client(address: str) -> Iterator[httpx.Client]:
    """A client of that server."""
    with httpx.Client(base_url=address, timeout=60) as asking:
        yield asking


@pytest.fixture
def serve(tiny_scanner: Scanner) -> Iterator[Callable[..., Asking]]:
    """Starts a server with other limits and returns a client of it."""
    with ExitStack() as stack:

        def start(token: str | None = None, **limits: float) -> Asking:
            app = create_app(tiny_scanner, token=token, limits=Limits(**limits))  # type: ignore[arg-type]
            url = stack.enter_context(running(app))
            asking = stack.enter_context(Asking(base_url=url, timeout=60))
            asking.app = app
            asking.server, asking.queue = app.state.service, app.state.service.queue
            return asking

        yield start
