"""Hostile requests are answered in bounded memory, and none with 500.

The server keeps answering.
"""

import contextlib
import io
import json
import os
import re
import socket
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import httpx
import numpy as np
import pytest

from spscanner_rag import Scanner
from spscanner_rag.apps.serving import connections, service
from spscanner_rag.apps.serving.app import create_app
from spscanner_rag.apps.serving.reading_queue import Job
from spscanner_rag.files.reading import read_bytes
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.system import kept_values
from spscanner_rag.system.kept_values import KeptBytes
from spscanner_rag.text.units import Unit
from tests.apps.cli.test_servers import serving
from tests.apps.serving.conftest import (
    POSTED,
    Asking,
    client_of,
    connected,
    serve,
    wait_until,
)
from tests.attack.conftest import Attempt
from tests.attack.hostile_requests import Hostile, hostile_request
from tests.word import docx, paragraph

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

__all__ = ["serve"]  # a fixture

Serve = Callable[..., Asking]
SHORT = {"query": "Who left?", "text": "He left. She stayed."}


@pytest.fixture(scope="module")
def client(tiny_scanner: Scanner) -> Iterator[httpx.Client]:
    with client_of(create_app(tiny_scanner)) as asking:
        yield asking


def sent(client: httpx.Client, path: str, body: bytes) -> httpx.Response:
    return client.post(path, content=body, headers={"content-type": "application/json"})


def filled(start: str, item: str, end: str, size: int = 2**20) -> bytes:
    """JSON of about a given size: numbered items between a start and an end."""
    return (
        start
        + ",".join(item.replace("#", f"{n:x}") for n in range(size // (len(item) + 4)))
        + end
    ).encode()


WRONG: dict[str, tuple[str, str, str, str]] = {
    "numbers as texts": ("/v1/count_tokens", '{"texts":[', "7", "]}"),
    "objects as texts": ("/rerank", '{"query":"q","texts":[', "{}", "]}"),
    "lists as documents": ("/v1/rerank", '{"query":"q","documents":[', "[]", "]}"),
    "objects that hold lists": (
        "/v2/rerank",
        '{"query":"q","documents":[',
        '{"text":[[]]}',
        "]}",
    ),
    "a document of many fields": (
        "/v2/rerank",
        '{"query":"q","documents":[{',
        '"#":[]',
        "}]}",
    ),
    "names of fields": (
        "/v1/rerank",
        '{"query":"q","documents":[{"t":"x"}],"rank_fields":[',
        '"t"',
        "]}",
    ),
    "true as requests": ("/v1/score", '{"requests":[', "true", "]}"),
    "wrong units": (
        "/v1/score",
        '{"requests":[{"query":"q","text":"a","units":[',
        '["a"]',
        "]}]}",
    ),
    "short texts": ("/v1/segment", '{"texts":[', '""', "]}"),
    "unknown fields": ("/v1/scan", '{"query":"q","text":"a b.",', '"#":1', "}"),
    "unknown fields with lists": (
        "/v1/page",
        '{"query":"q","text":"a b.",',
        '"x#":[[1]]',
        "}",
    ),
    "documents in a text": ("/v1/scan", '{"query":"q","text":[', '{"":0}', "]}"),
    "nested": ("/v1/scan", '{"query":"q","text":', "[" * 5_000, "}"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_body_of_wrong_items_is_refused_in_little_memory(
    client: httpx.Client, attempt: Attempt, name: str
) -> None:
    path, start, item, end = WRONG[name]
    with attempt("server: wrong items"):
        answer = sent(client, path, filled(start, item, end))
        assert answer.status_code in (413, 422)
        assert len(answer.json()["message"]) < 500
        assert client.get("/health").status_code == 200


def test_fields_are_counted_before_they_are_joined(
    client: httpx.Client, attempt: Attempt
) -> None:
    for names, size in (
        (["a"] * 900, 20_000),
        (["a", "b"] * 400, 30_000),
        (["b"] * 1_000, 9_000),
    ):
        document = {"a": "x" * size, "b": "y" * size}
        with attempt("server: fields that multiply"):
            body = {"query": "q?", "documents": [document], "rank_fields": names}
            assert client.post("/v1/rerank", json=body).status_code == 413


RETURNED: dict[str, tuple[bytes, int]] = {
    "half a character": (rb'{"text": "He left.", "x": "\ud8ff!"}', 200),
    "half a character as a name": (rb'{"text": "He left.", "\udc01": 1}', 200),
    "half a character in a list": (
        rb'{"text": "He left.", "to": ["a\\\ud801", "\\ud801"]}',
        200,
    ),
    "an infinite number": (b'{"text": "He left.", "x": -Infinity}', 422),
    "a number beyond all": (b'{"text": "He left.", "x": 1e999}', 422),
    "deep lists": (b'{"text": "He left.", "x": ' + b"[" * 150 + b"]" * 150 + b"}", 422),
    "deep objects": (
        b'{"text": "He left.", "x": ' + b'{"y":' * 900 + b"1" + b"}" * 901,
        422,
    ),
    "many digits": (b'{"text": "He left.", "x": ' + b"8" * 4_000 + b"}", 200),
    "usual values": (
        '{"text": "He left.", "x": [1, 2.5, null, true], "ü": "é\U0001f600"}'.encode(),
        200,
    ),
}


@pytest.mark.parametrize("name", RETURNED)
def test_a_returned_document_is_what_was_sent_or_refused(
    client: httpx.Client, name: str
) -> None:
    document, status = RETURNED[name]
    body = (
        b'{"query": "Who left?", "return_documents": true, "documents": ['
        + document
        + b"]}"
    )
    answer = sent(client, "/v1/rerank", body)
    assert answer.status_code == status, answer.text
    if status == 200:
        got = json.dumps(answer.json()["results"][0]["document"], ensure_ascii=False)
        assert got.encode() is not None
        if b"\\ud8ff" in document:
            assert "\ufffd!" in got
    if name in ("usual values", "many digits"):
        assert answer.json()["results"][0]["document"] == json.loads(document)
    # an escaped backslash does not begin a surrogate
    if name == "half a character in a list":
        assert answer.json()["results"][0]["document"]["to"] == ["a\\\ufffd", "\\ud801"]


def test_what_the_model_reads_counts_not_what_the_caller_says_the_text_is(
    serve: Serve,
) -> None:
    client = serve(request_characters=2_000)

    def asked(text: str, *units: tuple[int, int, str | None], query: str = "q?") -> int:
        body = {"requests": [{"query": query, "text": text, "units": units}]}
        return client.post("/v1/score", json=body).status_code

    assert asked("ab", (0, 2, "It rained. " * 50)) == 200
    assert asked("ab", (0, 2, "It rained. " * 200)) == 413
    assert asked("ab", (0, 1, "It rained. " * 100), (1, 2, "He left. " * 110)) == 413
    assert asked("ab", (0, 2, None), query="who " * 600) == 413
    assert asked("It rained. " * 200, (0, 2, None)) == 413
    long = Unit(0, 1, "It rained. " * 9_000)
    pipeline = client.queue.pipeline
    for text, units in (("a", [long]), ("ab", [long, long._replace(start=1, end=2)])):
        assert Job(
            [pipeline.request("q?", text, units)], "a", 1.0
        ).characters > 90_000 * len(units)


LONG = "The keeper left the island in winter. " * 20_000
WORK: dict[str, tuple[str, dict[str, Any]]] = {
    "scan": ("/v1/scan", {"query": "q?", "text": LONG}),
    "segment": ("/v1/segment", {"texts": [LONG, LONG]}),
    "count_tokens": ("/v1/count_tokens", {"texts": [LONG, LONG]}),
    "score": (
        "/v1/score",
        {"requests": [{"query": "q?", "text": LONG, "units": [[0, 9, None]]}]},
    ),
    "pasted text": ("/v1/page", {"query": "q?", "text": LONG}),
    "preparing": ("/v1/prepare", {"text": LONG}),
    **{
        ending: (
            "/v1/page",
            {"query": "q?", "name": f"a.{ending}", "file": b64encode(content).decode()},
        )
        for ending, content in {
            "md": b"# a\n" * 90_000,
            "html": b"<p>a" * 90_000,
            "docx": docx(paragraph("a") * 90_000),
            "csv": b"a,b\n" * 90_000,
            "txt": b"00:01 Ann: a\n" * 30_000,
        }.items()
    },
}


@pytest.mark.parametrize("name", WORK)
def test_all_work_has_the_same_limit_of_time(serve: Serve, name: str) -> None:
    client = serve(seconds=0.02)
    path, body = WORK[name]
    answer = client.post(path, json=body)
    assert (answer.status_code, "within 0.02 s" in answer.json()["message"]) == (
        504,
        True,
    )


@pytest.mark.parametrize(
    "text", ["# a\n" * 4_000, "|a|b|\n|-|-|\n" + "|x|y|\n" * 4_000, "- a\n" * 4_000]
)
def test_cutting_a_text_of_many_blocks_can_be_ended(
    tiny_scanner: Scanner, text: str
) -> None:
    blocks = read_bytes("a.md", text.encode()).blocks
    asked: list[int] = []
    tiny_scanner.reading.cut_blocks(text, blocks, lambda: asked.append(0))
    assert len(asked) >= len(blocks) / 100


@pytest.mark.parametrize("name", ["segment", "preparing"])
def test_work_whose_client_left_is_given_up(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    pieces: list[int] = []
    stop_if = service.stop_if
    monkeypatch.setattr(
        service, "stop_if", lambda *given: pieces.append(1) or stop_if(*given)
    )
    client = serve()
    path, given = WORK[name]
    body = json.dumps({key: value * 2 for key, value in given.items()}).encode()
    with connected(client, POSTED.format(path, len(body)).encode() + body):
        wait_until(lambda: len(pieces) > 0)
    wait_until(lambda: client.server.working == 0)
    before = len(pieces)
    time.sleep(0.3)
    assert len(pieces) - before <= 1
    assert before < 400  # of about 470


def is_closed(connection: socket.socket, seconds: float = 20) -> bool:
    connection.settimeout(seconds)
    try:
        while connection.recv(65536):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


DOORS = "server: silent connections, wrong hosts"
BEGUN = [b"", b"GET /health HTTP/1.1\r\nhost: x\r\nx-slow: ", b"PO", b"\r\n"]


@pytest.mark.slow
@pytest.mark.parametrize("begun", BEGUN)
def test_connections_that_ask_nothing_keep_nobody_out(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, begun: bytes, attempt: Attempt
) -> None:
    monkeypatch.setattr(connections, "SILENT_OF_ADDRESS", 6)
    client = serve(token="a-secret")
    with attempt(DOORS):
        silent = [connected(client, begun) for _ in range(30)]
        assert httpx.get(f"{client.base_url}/health").status_code == 200
        right = {"authorization": "Bearer a-secret"}
        assert (
            httpx.post(
                f"{client.base_url}/v1/scan", json=SHORT, headers=right, timeout=60
            ).status_code
            == 200
        )
        assert all(is_closed(one) for one in silent[:20])
        for one in silent:
            one.close()


def test_a_slow_request_is_closed(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, attempt: Attempt
) -> None:
    monkeypatch.setattr(connections, "SILENT_SECONDS", 0.3)
    client = serve(token="a-secret")
    head = b"POST /v1/scan HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n{"
    for data in (*BEGUN, head):  # the last one gets 401, and its body never comes
        with attempt(DOORS), connected(client, data) as connection:
            assert is_closed(connection)


def test_memory_of_bodies_is_counted_as_they_arrive(
    serve: Serve, attempt: Attempt
) -> None:
    client = serve(waiting_characters=100_000, transfer_seconds=20)
    with attempt(DOORS):
        head = POSTED.format("/v1/scan", 90_000).encode()
        announced = [connected(client, head) for _ in range(6)]
        # bodies that are not sent do not count
        assert client.post("/v1/scan", json=SHORT).status_code == 200
        chunk = (
            head.replace(b"content-length: 90000", b"transfer-encoding: chunked")
            + b"9c40\r\n"
            + b" " * 40_000
        )
        chunked = [connected(client, chunk + b"\r\n") for _ in range(4)]
        answered = 0
        for connection in chunked:
            connection.settimeout(2)
            with contextlib.suppress(TimeoutError):
                answered += connection.recv(100).startswith(b"HTTP/1.1 429")
        assert answered == 2  # there is room for two
        for connection in (*announced, *chunked):
            connection.close()


HOSTS = [
    *"testserver localhost.evil.example 127.0.0.1.evil.example localhost:x"
    " evil@localhost".split(),
    *(
        "",
        "evil.example\r\nhost: localhost",
        "localhost\r\nhost: evil.example",
        "localhost\r\nhost: localhost",
    ),
]


@pytest.mark.parametrize("host", HOSTS)
def test_names_of_other_machines_and_second_ones_are_refused(
    client: httpx.Client, host: str, attempt: Attempt
) -> None:
    request = (
        f"GET /v1/models HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode()
    )
    with attempt(DOORS), connected(client, request) as connection:
        assert connection.recv(100).startswith((b"HTTP/1.1 421", b"HTTP/1.1 400"))
    assert client.get("/health", headers={"host": "localhost:80"}).status_code == 200


def archive(**changed: Any) -> bytes:
    arrays = (
        CollectionIndex.of([["The keeper left.", "It rained."]]).to_arrays() | changed
    )
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def damaged_archives() -> Iterator[bytes]:
    whole = archive()
    yield from (b"", whole[: len(whole) // 2], whole[:-10], b"PK\x05\x06" + bytes(18))
    yield archive(vocabulary=np.array([{}], dtype=object))
    yield archive(vocabulary=np.frombuffer(b"[" * 100_000, np.uint8))
    yield archive(keys=np.frombuffer(b'{"a": 1}', np.uint8))
    for name in ("units", "words", "stops", "times"):
        yield archive(**{name: np.array(["a", "b"])})
        yield archive(**{name: np.full(3, 2**62)})
        yield archive(**{name: np.zeros((2, 0, 3), np.float16)})
    for old, new in (
        (b"(1,)", b"(9,)"),
        (b"'<i4'", b"'|O8'"),
        (b"'shape': (", b"'shape': -"),
        (b"}", b"{"),
    ):
        yield whole.replace(old, new)


def test_damaged_collections_are_refused(
    client: httpx.Client, attempt: Attempt
) -> None:
    for content in damaged_archives():
        with attempt("server: damaged collections"):
            answer = client.put(
                f"/v1/collections/{sha256(content).hexdigest()}", content=content
            )
            # parts that nothing reads may be damaged
            assert answer.status_code in (
                204,
                422,
            ), answer.text
    assert client.get("/health").status_code == 200


def test_collections_have_a_budget(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "COLLECTION_BYTES", 90_000)
    bound = KeptBytes(100_000)
    monkeypatch.setattr(kept_values, "bound_of_process", lambda: bound)
    client = serve()

    def put(words: int, name: str) -> tuple[str, int]:
        index = CollectionIndex.of(
            [[f"{name}{number} left" for number in range(words)]]
        )
        buffer = io.BytesIO()
        np.savez(buffer, **index.to_arrays())
        digest = sha256(buffer.getvalue()).hexdigest()
        return (
            digest,
            client.put(
                f"/v1/collections/{digest}", content=buffer.getvalue()
            ).status_code,
        )

    def known(digest: str) -> bool:
        requests = [{"query": "q?", "text": "He left.", "units": [(0, 8, None)]}]
        body = {"requests": requests, "collection": digest}
        return client.post("/v1/score", json=body).status_code == 200

    kept = [put(80, name) for name in ("a", "b")]
    assert all(known(digest) for digest, _ in kept)
    assert known(kept[0][0])  # the last one used
    newest, status = put(80, "c")
    assert ([status for _, status in kept], status) == ([204, 204], 204)
    assert (known(kept[0][0]), known(kept[1][0]), known(newest)) == (True, False, True)
    assert put(300, "d")[1] == 413
    assert known(newest)


def test_requests_of_every_kind_get_an_answer(
    client: httpx.Client, attempt: Attempt
) -> None:
    random = Random(1)
    for _ in range(60):
        asked = hostile_request(random, 3_000)
        with attempt("server: drawn requests"):
            assert answered(client, asked) < 500


def answered(client: httpx.Client, asked: Hostile) -> int:
    kind = {"content-type": "application/json"}
    return client.request(
        asked.method, asked.path, content=asked.body, headers=kind
    ).status_code


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_no_request_fills_the_memory_or_silences_the_server(
    tiny_checkpoint: Path, attempt: Attempt
) -> None:
    limits = ("--max-body-mb", 8, "--max-seconds", 10, "--device", "cpu")
    with serving(tiny_checkpoint, *limits) as (process, url):
        assert process.stderr is not None
        threading.Thread(target=process.stderr.read, daemon=True).start()
        over, silences = threading.Event(), []

        def computed() -> float:
            fields = (
                Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            )
            return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

        def watch() -> None:
            """Silence counts only the time that the server computed."""
            with httpx.Client(base_url=url, timeout=600) as watching:
                while not over.wait(0.2):
                    asked, before = time.monotonic(), computed()
                    assert watching.get("/health").status_code == 200
                    silences.append(min(time.monotonic() - asked, computed() - before))

        watcher = threading.Thread(target=watch)
        watcher.start()

        def ask(seed: int) -> list[tuple[Hostile, int]]:
            random, found = Random(seed), []
            with httpx.Client(base_url=url, timeout=600) as asking:
                for _ in range(500):
                    asked = hostile_request(random, 7_900_000)
                    found.append(
                        (asked._replace(body=asked.body[:300]), answered(asking, asked))
                    )
            return found

        with ThreadPoolExecutor(4) as clients:
            for asked, status in (
                each for found in clients.map(ask, range(4)) for each in found
            ):
                with attempt("server: drawn requests"):
                    assert status < 500 or status == 504, asked
        over.set()
        watcher.join()
        (peak,) = re.findall(
            r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text()
        )
        assert int(peak) < 2**20
        assert max(silences) < 2
