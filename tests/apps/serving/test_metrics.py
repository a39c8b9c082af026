"""What a server counts: correct, behind the token, and with labels that stay few."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from spscanner_rag.apps.serving.access import OTHER
from spscanner_rag.apps.serving.app import create_app
from tests.apps.serving.conftest import Asking, connected, wait_until

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

Serve = Callable[..., Asking]


def samples_of(client: httpx.Client, **headers: str) -> dict[Any, float]:
    """All samples, by their name and their labels."""
    answer = client.get("/metrics", headers=headers)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    samples: dict[Any, float] = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            samples[sample.name, *sorted(sample.labels.items())] = sample.value
    return samples


def test_requests_tokens_and_refusals_are_counted(serve: Serve) -> None:
    client = serve()
    text = "The keeper signed the treaty. It rained."
    for _ in range(3):
        scan = client.post("/v1/scan", json={"query": "Who signed?", "text": text})
        assert scan.status_code == 200
    assert client.post("/v1/scan", json={"query": "Who?"}).status_code == 422
    wait_until(lambda: len(client.get("/metrics").text) > 0)
    samples = samples_of(client)
    path = ("path", "/v1/scan")
    total = "spscanner_requests_total"
    assert samples[total, path, ("status", "200")] == 3
    assert samples[total, path, ("status", "422")] == 1
    assert samples["spscanner_refused_total", ("status", "422")] == 1
    assert samples["spscanner_request_seconds_count", path] == 4
    assert 0 < samples["spscanner_request_seconds_sum", path] < 60
    n_tokens = client.server.scanner.count_tokens(text)
    assert 3 <= samples["spscanner_tokens_read_total",] <= 3 * n_tokens + 3
    assert samples["spscanner_waiting_requests",] == 0


def test_the_length_of_the_queue_is_told(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = serve()
    queue = type(client.queue)
    monkeypatch.setattr(queue, "waiting", property(lambda own: 7))
    assert samples_of(client)["spscanner_waiting_requests",] == 7


def test_metrics_need_the_token(serve: Serve) -> None:
    client = serve(token="a-secret")
    assert client.get("/metrics").status_code == 401
    assert samples_of(client, authorization="Bearer a-secret")


HOSTILE = [
    b"GET /%d HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"GET /v1/scan/%d?a=%d HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"PUT /v1/collections/%d HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"M%d /v1/scan HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nhost: h%d.example\r\n\r\n",
    b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\nx-forwarded-for: %d\r\n\r\n",
    b'GET /"}%d{x="\\ HTTP/1.1\r\nhost: localhost\r\n\r\n',
    b"POST /v1/scan HTTP/1.1\r\nhost: localhost\r\ncontent-encoding: g%d\r\n\r\n",
    b"GET /rerank;%d HTTP/1.1\r\nhost: localhost\r\nauthorization: %d\r\n\r\n",
]


def test_no_label_comes_from_a_client(serve: Serve) -> None:
    client = serve()
    before = samples_of(client)
    numbers = range(1000, 1020)
    for number in numbers:
        for request in HOSTILE:
            data = request.replace(b"%d", str(number).encode())
            with connected(client, data) as connection:
                assert connection.recv(100).startswith(b"HTTP/1.1 ")
    after = samples_of(client)
    paths = {*client.app.openapi()["paths"], "/openapi.json", OTHER}
    for name, *labels in after:
        for label, value in labels:
            assert label in {"path", "status", "le"}, name
            if label == "path":
                assert value in paths
            elif label == "status":
                assert value.isdigit()
                assert 100 <= int(value) <= 599
            assert not any(str(number) in value for number in numbers)
    # As many as after one request of each kind, however many clients there are.
    assert len(after) - len(before) < 20 * 2 * len(HOSTILE)
    again = len(after)
    for number in range(2000, 2010):
        for request in HOSTILE:
            data = request.replace(b"%d", str(number).encode())
            with connected(client, data) as connection:
                connection.recv(100)
    assert len(samples_of(client)) == again


def test_two_servers_count_apart(tiny_scanner: Any) -> None:
    first = create_app(tiny_scanner).state.service
    second = create_app(tiny_scanner).state.service
    first.metrics.add_tokens(5)
    try:
        assert b"spscanner_tokens_read_total 5.0" in first.metrics.as_text()
        assert b"spscanner_tokens_read_total 0.0" in second.metrics.as_text()
    finally:
        first.close()
        second.close()
