"""Who may ask, how much, and how long: tokens, names, sizes, slow and vanishing clients, the log."""

import contextlib
import json
import logging
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from spscanner_rag import Scanner
from spscanner_rag.apps.serving.app import create_app

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

SCAN = {"query": "Who left?", "text": "He left. She stayed."}
LONG = {"query": "Who left?", "text": "The keeper left the island in winter. " * 40_000}


def test_only_who_has_the_token_is_answered(serve: Callable[..., httpx.Client]) -> None:
    client = serve(token="a-secret")
    for given in (None, "Bearer a-secre", "Bearer a-secret2", "a-secret", "Bearer é"):
        headers = {} if given is None else {"authorization": given.encode("latin-1")}
        for path in ("/metrics", "/v1/models", "/v1/scan"):
            answer = client.get(path, headers=headers)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
            assert "a-secret" not in answer.text
    assert client.get("/health").status_code == client.get("/ready").status_code == 200
    answer = client.post("/v1/scan", json=SCAN, headers={"authorization": "Bearer a-secret"})
    assert answer.status_code == 200


@pytest.mark.parametrize("token", ["", " ", "a b\n", "clé"])
def test_a_token_must_be_one(tiny_scanner: Scanner, token: str) -> None:
    with pytest.raises(ValueError, match="the token is empty or has characters"):
        create_app(tiny_scanner, token=token)


def test_without_a_token_only_names_of_this_machine_are_answered(serve: Callable[..., httpx.Client]) -> None:
    client = serve()
    assert client.get("/health", headers={"host": "localhost:80"}).status_code == 200
    answer = client.post("/v1/scan", json=SCAN, headers={"host": "evil.example"})
    assert (answer.status_code, "no token" in answer.json()["message"]) == (421, True)


def test_sizes_beyond_the_limits_are_refused(serve: Callable[..., httpx.Client]) -> None:
    client = serve(body_bytes=5_000, documents=3, request_characters=1_000)
    refused = {
        "got 4 texts; expected at most 3": {"query": "a", "documents": ["b"] * 4},
        "got 1003 characters": {"query": "a", "documents": ["b" * 500] * 2},
        "the body is larger than 5000 bytes": {"query": "a", "text": "b" * 5_000},
    }
    for message, body in refused.items():
        answer = client.post("/v1/scan", json=body)
        assert answer.status_code == 413
        assert message in answer.json()["message"] or "got 1002 characters" in answer.json()["message"]
    pieces = (b"x" * 1_000 for _ in range(100))  # without a content-length
    assert client.post("/v1/scan", content=pieces).status_code == 413
    answer = client.post("/v1/scan", content=b"\x1f\x8b", headers={"content-encoding": "gzip"})
    assert (answer.status_code, "uncompressed" in answer.json()["message"]) == (415, True)
    assert client.post("/v1/scan", json=SCAN).status_code == 200


def connected(client: httpx.Client) -> socket.socket:
    assert client.base_url.port is not None
    return socket.create_connection(("127.0.0.1", client.base_url.port), timeout=30)


def test_half_a_body_is_given_up(serve: Callable[..., httpx.Client]) -> None:
    client = serve(transfer_seconds=0.3)
    with connected(client) as connection:
        connection.sendall(b"POST /v1/scan HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{")
        assert connection.recv(1000).startswith(b"HTTP/1.1 408")
    with connected(client) as connection:  # and one that hangs up
        connection.sendall(b"POST /v1/scan HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{")
    assert client.post("/v1/scan", json=SCAN).status_code == 200


def test_time_is_limited(serve: Callable[..., httpx.Client]) -> None:
    client = serve(seconds=0.2)
    started = time.monotonic()
    answer = client.post("/v1/scan", json=LONG)
    assert answer.status_code == 504
    assert "within 0.2 s" in answer.json()["message"]
    assert time.monotonic() - started < 20
    assert client.post("/v1/scan", json=SCAN).status_code in (200, 504)  # as fast as this machine is


def test_a_client_that_goes_away_cancels_its_work(
    serve: Callable[..., httpx.Client], caplog: pytest.LogCaptureFixture
) -> None:
    client = serve()
    body = json.dumps(LONG).encode()
    with connected(client) as connection:
        head = "POST /v1/scan HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        connection.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        while not reading(client):
            time.sleep(0.01)
    deadline = time.monotonic() + 20
    while reading(client) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not reading(client)
    tokens = metric(client, "spscanner_tokens_read_total")
    assert tokens < 300_000  # the text has some 400,000
    assert metric(client, "spscanner_cancelled_total") == 1


def test_a_crowd_that_hangs_up_leaves_a_server_that_answers(serve: Callable[..., httpx.Client]) -> None:
    client = serve()
    middling = {"query": "Who left?", "text": "The keeper left the island in winter. " * 2_000}

    def ask_and_leave(number: int) -> None:
        body = (LONG, middling, SCAN, SCAN)[number % 4]
        with contextlib.suppress(httpx.TimeoutException):
            httpx.post(f"{client.base_url}/v1/scan", json=body, timeout=(0.05, 0.2, 0.4)[number % 3])

    with ThreadPoolExecutor(48) as clients:
        list(clients.map(ask_and_leave, range(96)))
    for body in (SCAN, middling):
        assert client.post("/v1/scan", json=body).status_code == 200
    deadline = time.monotonic() + 20
    while metric(client, "spscanner_waiting_requests"):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def metric(client: httpx.Client, name: str) -> float:
    lines = client.get("/metrics").text.splitlines()
    return float(next(line.split(" ")[1] for line in lines if line.startswith(name + " ")))


def reading(client: httpx.Client) -> bool:
    return metric(client, "spscanner_characters") > 0


def test_a_full_queue_says_when_to_come_back(serve: Callable[..., httpx.Client]) -> None:
    client = serve(waiting_characters=1_600_000)
    answers: list[httpx.Response] = []

    def long() -> None:
        answers.append(client.post("/v1/scan", json=LONG))

    first = threading.Thread(target=long)
    first.start()
    while not reading(client):
        time.sleep(0.01)
    refused = client.post("/v1/scan", json=LONG)
    assert refused.status_code == 429
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    first.join()
    assert answers[0].status_code == 200


def test_the_log_has_a_line_of_json_without_texts(
    serve: Callable[..., httpx.Client], caplog: pytest.LogCaptureFixture
) -> None:
    client = serve()
    with caplog.at_level(logging.INFO, "spscanner_rag.access"):
        client.post("/v1/scan?secret=1", json={"query": "a private question", "text": "A private text."})
        client.get("/a/private/path")
        deadline = time.monotonic() + 10
        while len(caplog.records) < 2 and time.monotonic() < deadline:  # a line is written after its answer
            time.sleep(0.01)
    lines = [
        json.loads(record.getMessage()) for record in caplog.records if record.name == "spscanner_rag.access"
    ]
    assert [(line["path"], line["status"]) for line in lines] == [("/v1/scan", 200), ("other", 404)]
    assert lines[0]["bytes_sent"] > 0 < lines[0]["bytes_received"]
    assert "private" not in json.dumps(lines)
    assert "secret" not in json.dumps(lines)
