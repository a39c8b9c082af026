"""A server that is stopped with a full queue, or never read: what its clients get, and what is left."""

import json
import os
import signal
import socket
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from urllib.parse import urlsplit

import httpx
import pytest

from tests.apps.cli.serving import Serving

pytestmark = [
    pytest.mark.slow,
    pytest.mark.allow_hosts(["127.0.0.1"]),
    pytest.mark.skipif(os.name == "nt", reason="Windows has no signals"),
]

TEXT = "The keeper left the island. " * 2_000
SCAN = {"query": "Who left?", "text": "He left. She stayed."}


def test_a_restart_answers_everything_that_waits(served: Serving) -> None:
    """SIGTERM with a queue: every request that was taken is answered, and a new server takes over the address."""
    with served() as (server, address):

        def ask(number: int) -> int:
            try:
                body = {"query": f"Who left {number}?", "text": TEXT}
                return httpx.post(f"{address}/v1/scan", json=body, timeout=120).status_code
            except httpx.TransportError:
                return 0  # it came when the server took no more

        with ThreadPoolExecutor(24) as clients:
            asked = [clients.submit(ask, number) for number in range(24)]
            wait(asked, return_when=FIRST_COMPLETED)  # most of the others wait
            server.send_signal(signal.SIGTERM)
            statuses = [future.result(120) for future in asked]
        assert server.wait(60) in (0, -signal.SIGTERM)
        assert server.stderr is not None
        rest = server.stderr.read()
    logged = [json.loads(line) for line in rest.splitlines() if line.startswith("{")]
    scans = [line["status"] for line in logged if line["path"] == "/v1/scan"]
    assert sorted(scans) == sorted(
        status for status in statuses if status
    )  # no taken request is without answer
    assert set(statuses) <= {0, 200, 503}
    assert 200 in statuses
    assert "Traceback" not in rest
    with served(port=urlsplit(address).port) as (_, again):
        assert httpx.post(f"{again}/v1/scan", json=SCAN, timeout=60).status_code == 200


def test_a_client_that_never_reads_holds_nobody_up(served: Serving) -> None:
    with served() as (_, address):
        parts = urlsplit(address)
        body = json.dumps({"query": "Who left?", "text": TEXT * 10, "top_k": None}).encode()
        head = "POST /v1/scan HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        with socket.create_connection((parts.hostname, parts.port), timeout=30) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
            for _ in range(20):
                assert httpx.post(f"{address}/v1/scan", json=SCAN, timeout=60).status_code == 200
