"""Who may ask, how much and how long.

The tests are about tokens, names, sizes, slow and vanishing clients, and the log.
"""

import base64
import contextlib
import gzip
import json
import logging
import re
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from spscanner_rag import Scanner
from spscanner_rag.apps.serving.app import create_app
from spscanner_rag.apps.serving.reading_queue import _SharedMeter
from tests.apps.serving.conftest import POSTED, Asking, connected, wait_until

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

Serve = Callable[..., Asking]

SCAN = {"query": "Who left?", "text": "He left. She stayed."}
MIDDLING = {
    "query": "Who left?",
    "text": "The keeper left the island in winter. " * 2_000,
}
LONG = {"query": "Who left?", "text": "The keeper left the island in winter. " * 30_000}
LONG_TOKENS = 300_000  # at least the number of tokens of LONG


def sent(client: httpx.Client, length: int, body: bytes = b"{") -> socket.socket:
    """A connection that has announced a body of some length and sent part of it."""
    return connected(client, POSTED.format("/v1/scan", length).encode() + body)


def test_only_who_has_the_token_is_answered(serve: Serve) -> None:
    client = serve(token="a-secret")
    for given in (None, "Bearer a-secre", "Bearer a-secret2", "a-secret", "Bearer é"):
        headers = {} if given is None else {"authorization": given.encode("latin-1")}
        for path in ("/v1/models", "/v1/scan"):
            answer = client.get(path, headers=headers)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (
                401,
                "Bearer",
            )
            assert "a-secret" not in answer.text
    assert client.get("/health").status_code == client.get("/ready").status_code == 200
    right = {"authorization": "Bearer a-secret"}
    assert client.post("/v1/scan", json=SCAN, headers=right).status_code == 200
    page = client.get("/").text  # open to all, with a field for the token
    assert 'id="token"' in page
    assert "a-secret" not in page
    for path in ("/v1/page", "/v1/prepare"):
        assert client.post(path, json=SCAN).status_code == 401


@pytest.mark.parametrize("token", ["", " ", "a b\n", "clé"])
def test_a_token_must_be_one(tiny_scanner: Scanner, token: str) -> None:
    with pytest.raises(ValueError, match="token is empty or has"):
        create_app(tiny_scanner, token=token)


def test_sizes_beyond_the_limits_are_refused(serve: Serve) -> None:
    client = serve(body_bytes=5_000, documents=3, request_characters=1_000)
    refused = {
        "got 4 texts; expected at most 3": {"query": "a", "documents": ["b"] * 4},
        "got 1002 characters": {"query": "a", "documents": ["b" * 500] * 2},
        "the body is larger than 5000 bytes": {"query": "a", "text": "b" * 5_000},
    }
    for message, body in refused.items():
        for path in (
            ("/v1/scan", "/v2/rerank") if "documents" in body else ("/v1/scan",)
        ):
            answer = client.post(path, json=body)
            assert (answer.status_code, message in answer.json()["message"]) == (
                413,
                True,
            )
    pieces = (b"x" * 1_000 for _ in range(100))  # without a content-length
    assert client.post("/v1/scan", content=pieces).status_code == 413
    file = {"query": "a", "file": "SGUgbGVmdC4g" * 100, "name": "a.txt"}  # "He left. "
    assert client.post("/v1/page", json=file).status_code == 200
    file["file"] = "SGUgbGVmdC4g" * 120  # its text has more than 1,000 characters
    rows = (
        b"a long name of a column,another long name of one\n" + b"1,2\n" * 30
    )  # names come before each row
    table = {"query": "a", "file": base64.b64encode(rows).decode(), "name": "a.csv"}
    for own in (file, table):
        assert client.post("/v1/page", json=own).status_code == 413
        del own["query"]
        assert client.post("/v1/prepare", json=own).status_code == 413
    assert client.post("/v1/scan", json=SCAN).status_code == 200


def test_a_body_is_refused_before_it_is_sent_or_unpacked(client: httpx.Client) -> None:
    with sent(client, 100_000_000) as connection:
        assert connection.recv(1000).startswith(b"HTTP/1.1 413")
    bomb = gzip.compress(bytes(20_000_000), 1)
    answer = client.post("/v1/scan", content=bomb, headers={"content-encoding": "gzip"})
    assert (answer.status_code, "uncompressed" in answer.json()["message"]) == (
        415,
        True,
    )
    assert (
        client.post("/v1/scan", content=bomb).status_code == 422
    )  # not JSON, and nothing unpacks it
    assert client.post("/v1/scan", json=SCAN).status_code == 200


def test_half_a_body_is_given_up(serve: Serve) -> None:
    client = serve(transfer_seconds=0.3)
    with sent(client, 100) as connection:
        assert connection.recv(1000).startswith(b"HTTP/1.1 408")
    with sent(client, 100):  # and a client that hangs up
        pass
    assert client.post("/v1/scan", json=SCAN).status_code == 200


def test_a_client_that_goes_away_cancels_its_work(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    after = _SharedMeter.after_step
    monkeypatch.setattr(
        _SharedMeter,
        "after_step",
        lambda meter, tokens: read.append(tokens) or after(meter, tokens),
    )
    client = serve()
    body = json.dumps(LONG).encode()
    with sent(client, len(body), body):
        wait_until(lambda: client.queue.characters > 0)
    wait_until(lambda: client.queue.characters == 0)
    assert sum(read) < LONG_TOKENS


@pytest.mark.slow
def test_a_crowd_that_hangs_up_leaves_a_server_that_answers(serve: Serve) -> None:
    client = serve()

    def ask_and_leave(number: int) -> None:
        body = (LONG, MIDDLING, SCAN, SCAN)[number % 4]
        with contextlib.suppress(httpx.TimeoutException):
            httpx.post(
                f"{client.base_url}/v1/scan",
                json=body,
                timeout=(0.05, 0.1, 0.2)[number % 3],
            )

    with ThreadPoolExecutor(24) as clients:
        list(clients.map(ask_and_leave, range(48)))
    for body in (SCAN, MIDDLING):
        assert client.post("/v1/scan", json=body).status_code == 200
    wait_until(lambda: client.queue.waiting == 0)


def test_the_log_is_json_without_texts(
    client: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    def logged() -> list[dict[str, Any]]:
        own = [
            record for record in caplog.records if record.name == "spscanner_rag.access"
        ]
        return [json.loads(record.getMessage()) for record in own]

    with caplog.at_level(logging.INFO, "spscanner_rag.access"):
        client.post(
            "/v1/scan?secret=1",
            json={"query": "a private question", "text": "A private text."},
        )
        client.get("/a/private/path")
        wait_until(lambda: len(logged()) >= 2)  # a line is written after its answer
    lines = sorted(logged(), key=lambda line: line["path"])
    assert [(line["path"], line["status"]) for line in lines] == [
        ("/v1/scan", 200),
        ("other", 404),
    ]
    assert lines[0]["bytes_sent"] > 0 < lines[0]["bytes_received"]
    assert not {"private", "secret"} & set(re.findall(r"\w+", json.dumps(lines)))
