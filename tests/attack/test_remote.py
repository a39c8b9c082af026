"""A server that lies, drips or floods is reported in one line.

Time and memory are bounded.
"""

import copy
import json
import socketserver
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import numpy as np
import pytest

from spscanner_rag.baselines import RemoteScanner
from spscanner_rag.baselines.remote_scanner import RemoteError
from spscanner_rag.text.units import Unit
from tests.attack.conftest import Attempt, assert_one_line

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

TEXT = "It rained. The keeper left."
UNITS = [Unit(0, 11, "It rained. "), Unit(11, 27, "The keeper left.")]
Written = Callable[[Callable[[bytes], object]], object]


@contextmanager
def answering(written: Written) -> Iterator[str]:
    """A server whose whole answer to each request is written by a function."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            length = 0
            while (line := self.rfile.readline()) not in (b"\r\n", b""):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            self.rfile.read(length)
            with suppress(OSError):  # the client has hung up
                written(self.wfile.write)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads, block_on_close = True, False

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def reply(content: bytes, status: str = "200 OK", *headers: str) -> Written:
    lines = (
        f"HTTP/1.1 {status}",
        *headers,
        f"content-length: {len(content)}",
        "connection: close",
    )
    return lambda write: write("\r\n".join(lines).encode() + b"\r\n\r\n" + content)


def packed(megabytes: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return (
        b"".join(packer.compress(bytes(2**20)) for _ in range(megabytes))
        + packer.flush()
    )


def endless(write: Callable[[bytes], object]) -> None:
    write(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")
    while True:
        write(b" " * 2**16)


def dripping(write: Callable[[bytes], object]) -> None:
    write(b"HTTP/1.1 200 OK\r\ncontent-length: 9000\r\n\r\n")
    for _ in range(200):
        write(b" ")
        time.sleep(0.05)


LOGITS: dict[str, bytes] = {
    "not a number": b'{"logits": [[0.5, NaN]]}',
    "infinite": b'{"logits": [[-Infinity, 1]]}',
    "beyond float32": b'{"logits": [[1, 4e38]]}',
    "nothing": b'{"logits": [[1, null]]}',
    "one too many": b'{"logits": [[1, 2, 3]]}',
    "a text too many": b'{"logits": [[1, 2], []]}',
    "uneven lists": b'{"logits": [[[1], [2, 3]]]}',
    "words": b'{"logits": [["high", "low"]]}',
    "an object": b'{"logits": {"0": [1, 2]}}',
    "a number": b"12",
    "no JSON": b"<html><body>Sign in</body></html>",
    "no text": b"\xff\xfe\x00",
    "deep": b'{"logits": ' + b"[" * 60_000,
    "many digits": b'{"logits": [[' + b"7" * 6_000 + b", 1]]}",
}


@pytest.mark.parametrize("name", LOGITS)
def test_wrong_logits_are_one_clear_error(attempt: Attempt, name: str) -> None:
    with attempt("remote: wrong replies"), answering(reply(LOGITS[name])) as url:
        with pytest.raises(RemoteError, match="/v1/score") as raised:
            RemoteScanner(url, timeout=20).score_units("Who left?", TEXT, UNITS)
        assert_one_line(str(raised.value))


CALLS: dict[str, tuple[Callable[[RemoteScanner], object], list[bytes]]] = {
    "the model": (
        lambda remote: remote.uses_collection,
        [
            b"[]",
            b'{"data": []}',
            b'{"data": [{}]}',
            b'{"data": [{"segmenter": 1, "uses_collection": true}]}',
            b'{"data": [{"segmenter": "a", "uses_collection": "no"}]}',
            b'{"data": [1, 2]}',
        ],
    ),
    "tokens": (
        lambda remote: remote.count_tokens(TEXT),
        [
            b'{"tokens": []}',
            b'{"tokens": ["7"]}',
            b'{"tokens": [-1]}',
            b'{"tokens": [true]}',
            b'{"tokens": [1e3]}',
            b'{"tokens": [99999999]}',
            b'{"tokens": [1, 2]}',
            b"null",
        ],
    ),
    "units": (
        lambda remote: remote.units_of(TEXT),
        [
            b'{"units": []}',
            b'{"units": [[[0, 5]]]}',
            b'{"units": [[[-3, 5, "a"]]]}',
            b'{"units": [[[5, 5, "a"]]]}',
            b'{"units": [[[0, 28, "a"]]]}',
            b'{"units": [[[0, 9, "a"], [8, 12, "b"]]]}',
            b'{"units": [[["0", "5", "a"]]]}',
            b'{"units": [[[0, 5, null]]]}',
            b'{"units": [[[0, 1.5, "a"]]]}',
        ],
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_other_calls_check_their_replies(attempt: Attempt, name: str) -> None:
    call, replies = CALLS[name]
    for content in replies:
        with attempt("remote: wrong replies"), answering(reply(content)) as url:
            remote = RemoteScanner(url, timeout=20)
            if name == "units":
                remote.__dict__["_model"] = {
                    "segmenter": "other",
                    "uses_collection": False,
                }
            with pytest.raises(RemoteError, match="/v1/") as raised:
                call(remote)
            assert_one_line(str(raised.value))


FLOODS: dict[str, Written] = {
    "without an end": endless,
    "larger than what was asked for": reply(b'{"logits": [[1, 2]]}' + b" " * 100_000),
    "packed": reply(packed(400), "200 OK", "content-encoding: gzip"),
    "packed twice": reply(packed(20), "200 OK", "content-encoding: gzip, gzip"),
    "packed with an error": reply(packed(400), "400 No", "content-encoding: gzip"),
    "a message that acts": reply(
        json.dumps({"message": "\x1b]0;a\x07\r\n\u202eb"}).encode(), "400 No"
    ),
    "a message that is none": reply(b'{"message": {"a": [1, 2]}}', "500 No"),
    "a deep message": reply(b"[" * 60_000, "404 No"),
    "a redirect": reply(b"", "308 Elsewhere", "location: http://127.0.0.1:9/v1/score"),
    "long headers": reply(b"{}", "200 OK", "x-long: " + "y" * 300_000),
    "nothing": lambda write: None,
    "a strange status": lambda write: write(b"HTTP/1.1 777 \x1b[31m\r\n\r\n"),
}


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_ends_in_bounded_memory(attempt: Attempt, name: str) -> None:
    with attempt("remote: floods"), answering(FLOODS[name]) as url:
        with pytest.raises(RemoteError) as raised:
            RemoteScanner(url, timeout=30, retries=0).score_units(
                "Who left?", TEXT, UNITS
            )
        assert_one_line(str(raised.value))
        assert "x1b" not in str(raised.value)


LATE: dict[str, Written] = {
    "drips": dripping,
    "is silent": lambda write: time.sleep(8),
    "sends half": lambda write: (
        write(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"),
        time.sleep(8),
    ),
    "asks for patience": reply(b"{}", "429 Later", "retry-after: 3600"),
    "asks for endless patience": reply(
        b"{}", "503 Later", "retry-after: " + "9" * 5_000
    ),
}


@pytest.mark.parametrize("name", LATE)
def test_the_time_is_that_of_the_whole_call(name: str) -> None:
    with answering(LATE[name]) as url:
        started = time.monotonic()
        with pytest.raises(RemoteError):
            RemoteScanner(url, timeout=0.4, retries=50).score_units(
                "Who left?", TEXT, UNITS
            )
        assert time.monotonic() - started < 6


SECRET = "s3cret-w0rd"
ADDRESSES = [
    f"http://keeper:{SECRET}@127.0.0.1:9",
    f"http://{SECRET}@127.0.0.1:9/behind/",
    f"https://:{SECRET}@127.0.0.1:9",
    f"ftp://a:{SECRET}@b",
    f"keeper:{SECRET}@127.0.0.1:9",
    f"http://a:{SECRET}@b:x",
    "",
]


@pytest.mark.parametrize("url", ADDRESSES)
def test_a_password_in_an_address_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ValueError, match="expected an address") as raised:
        RemoteScanner(url)
    assert SECRET not in str(raised.value)
    assert raised.value.__cause__ is None


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy], ids=["copy", "deepcopy"])
@pytest.mark.parametrize("token", ["own", None, ""])
def test_a_copy_has_the_same_token(
    copied: Callable[[RemoteScanner], RemoteScanner],
    token: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SPSCANNER_TOKEN", "of-the-environment")
    with answering(reply(b'{"logits": [[1, 2]]}')) as url:
        remote = RemoteScanner(url, token=token)
        twin = copied(remote)
        assert twin._token == remote._token
        np.testing.assert_array_equal(
            twin.score_units("Who left?", TEXT, UNITS), [1, 2]
        )
