"""``spscanner serve``: what it refuses before it loads anything.

And what it leaves when it is stopped or never read.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from fastapi.testclient import TestClient

from spscanner_rag.apps.cli.servers import _run_over_streams
from spscanner_rag.apps.serving.access import access_log
from tests.command_line import Run

TEXT = "The keeper left the island. " * 2_000
SCAN = {"query": "Who left?", "text": "He left. She stayed."}


@contextmanager
def serving(
    checkpoint: Path, *options: object, port: int = 0
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Serve a checkpoint until the block ends."""
    named = ["serve", "--port", port, "--model", checkpoint, *options]
    command = [sys.executable, "-m", "spscanner_rag.apps.cli", *map(str, named)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=environment
    ) as server:
        assert server.stderr is not None
        try:
            found = None
            while found is None:
                line = server.stderr.readline()
                assert line, "the server ended before it listened"
                found = re.search(r"running on (http://\S+)", line)
            yield server, found.group(1)
        finally:
            server.kill()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_another_address_needs_a_token(
    host: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPSCANNER_TOKEN", raising=False)
    refused = run("serve", "--host", host, "--model", "does-not-exist")
    refused.refuses(f"--host: got {host!r} without a token")
    refused.refuses("SPSCANNER_TOKEN")


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--max-seconds", "0", "expected a"),
        ("--max-documents", "-1", "expected a"),
        ("--max-body-mb", "0", "expected a"),
        ("--token-file", "no-such-file", "no-such-file"),
    ],
)
def test_options_are_checked_first(
    option: str, value: str, message: str, run: Run
) -> None:
    run("serve", option, value, "--model", "does-not-exist").refuses(message)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals")
@pytest.mark.slow
@pytest.mark.allow_hosts(["127.0.0.1"])
def test_a_restart_answers_everything_that_waits(tiny_checkpoint: Path) -> None:
    """After SIGTERM, every accepted request is answered.

    A new server takes over the address.
    """
    with serving(tiny_checkpoint) as (server, address):

        def ask(number: int) -> int:
            try:
                body = {"query": f"Who left {number}?", "text": TEXT}
                return httpx.post(
                    f"{address}/v1/scan", json=body, timeout=120
                ).status_code
            except httpx.TransportError:
                return 0  # this request came when the server accepted no more

        with ThreadPoolExecutor(24) as clients:
            asked = [clients.submit(ask, number) for number in range(24)]
            wait(asked, return_when=FIRST_COMPLETED)  # most of the others are waiting
            server.send_signal(signal.SIGTERM)
            statuses = [future.result(120) for future in asked]
        assert server.wait(60) in (0, -signal.SIGTERM)
        assert server.stderr is not None
        rest = server.stderr.read()
    logged = [json.loads(line) for line in rest.splitlines() if line.startswith("{")]
    scans = [line["status"] for line in logged if line["path"] == "/v1/scan"]
    assert sorted(scans) == sorted(
        status for status in statuses if status
    )  # every accepted request has an answer
    assert set(statuses) <= {0, 200, 503}
    assert 200 in statuses
    assert "Traceback" not in rest
    with serving(tiny_checkpoint, port=urlsplit(address).port) as (_, again):
        assert httpx.post(f"{again}/v1/scan", json=SCAN, timeout=60).status_code == 200


@pytest.mark.slow
@pytest.mark.allow_hosts(["127.0.0.1"])
def test_a_client_that_never_reads_holds_nobody_up(tiny_checkpoint: Path) -> None:
    with serving(tiny_checkpoint) as (_, address):
        parts = urlsplit(address)
        body = json.dumps(
            {"query": "Who left?", "text": TEXT * 10, "top_k": None}
        ).encode()
        head = (
            "POST /v1/scan HTTP/1.1\r\nhost: localhost\r\ncontent-type:"
            " application/json\r\n"
        )
        with socket.create_connection(
            (parts.hostname, parts.port), timeout=30
        ) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(
                f"{head}content-length: {len(body)}\r\n\r\n".encode() + body
            )
            for _ in range(20):
                assert (
                    httpx.post(f"{address}/v1/scan", json=SCAN, timeout=60).status_code
                    == 200
                )


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The configurations of the servers that would have run."""
    configurations: list[Any] = []

    def run(server: Any) -> None:
        configurations.append(server.config)

    monkeypatch.setattr("uvicorn.Server.run", run)
    monkeypatch.setattr("gc.freeze", lambda: None)  # would last for all tests
    before = (list(access_log.handlers), access_log.level, access_log.propagate)
    yield configurations
    access_log.handlers[:], access_log.propagate = before[0], before[2]
    access_log.setLevel(before[1])


def test_the_token_of_a_file_guards_the_server(
    run: Run, served: list[Any], tiny_checkpoint: Path, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text(" secret\n")
    options = ("--host", "0.0.0.0", "--port", 8099, "--max-body-mb", 1)
    model = ("--model", tiny_checkpoint, "--device", "cpu", "--dtype", "float32")
    assert run("serve", "--token-file", token, *options, *model).code == 0
    (configuration,) = served
    assert (configuration.host, configuration.port) == ("0.0.0.0", 8099)
    with TestClient(configuration.app) as client:
        assert client.post("/v1/scan", json=SCAN).status_code == 401
        headers = {"Authorization": "Bearer secret"}
        answered = client.post("/v1/scan", json=SCAN, headers=headers)
        assert answered.status_code == 200
        long = {**SCAN, "text": "x" * 2**20}
        refused = client.post("/v1/scan", json=long, headers=headers)
        assert refused.status_code == 413


def test_a_server_for_agents_listens_at_this_machine_alone(
    run: Run, served: list[Any], tiny_checkpoint: Path, tmp_path: Path
) -> None:
    model = ("--model", tiny_checkpoint, "--device", "cpu", "--dtype", "float32")
    assert run("mcp", tmp_path, "--port", 0, "--no-cache", *model).code == 0
    (configuration,) = served
    assert (configuration.host, configuration.port) == ("127.0.0.1", 0)


def test_a_folder_for_agents_must_exist(run: Run, tmp_path: Path) -> None:
    run("mcp", tmp_path, tmp_path / "none").refuses("none: no such folder")


def test_a_host_that_leaves_ends_a_server_over_streams() -> None:
    """Any other error of the server is shown."""

    class Server:
        def __init__(self, error: Exception) -> None:
            self.error = error

        def run(self) -> None:
            raise ExceptionGroup("of its tasks", [self.error])

    left: Any = Server(BrokenPipeError())
    with pytest.raises(BrokenPipeError):
        _run_over_streams(left)
    broken: Any = Server(KeyError("a bug"))
    with pytest.raises(ExceptionGroup):
        _run_over_streams(broken)
