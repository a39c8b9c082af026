"""Requests that are far too large, with the default limits; each gets its documented answer."""

import gzip
import socket
from collections.abc import Callable

import httpx
import pytest

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

SCAN = {"query": "Who left?", "text": "He left. She stayed."}


def test_ten_thousand_documents_are_refused(client: httpx.Client) -> None:
    documents = ["He left."] * 10_000
    for path, body in {
        "/v1/scan": {"query": "Who left?", "documents": documents},
        "/v2/rerank": {"query": "Who left?", "documents": documents},
        "/rerank": {"query": "Who left?", "texts": documents},
    }.items():
        assert client.post(path, json=body).status_code == 413
    assert client.post("/v1/scan", json=SCAN).status_code == 200


def test_a_hundred_megabytes_are_refused_before_they_are_sent(serve: Callable[..., httpx.Client]) -> None:
    client = serve()
    assert client.base_url.port is not None
    with socket.create_connection(("127.0.0.1", client.base_url.port), timeout=30) as connection:
        head = "POST /v1/scan HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000000\r\n\r\n{"
        connection.sendall(head.encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 413")
    assert client.post("/v1/scan", json=SCAN).status_code == 200


def test_a_gzip_bomb_is_not_unpacked(client: httpx.Client) -> None:
    bomb = gzip.compress(bytes(20_000_000), 1)
    answer = client.post("/v1/scan", content=bomb, headers={"content-encoding": "gzip"})
    assert answer.status_code == 415
    # Without the header it is not JSON, and nothing unpacks it either.
    assert client.post("/v1/scan", content=bomb).status_code == 422
    assert client.post("/v1/scan", json=SCAN).status_code == 200
