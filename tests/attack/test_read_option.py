"""Odd values of ``read`` are refused in one line by whatever takes the option."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from spscanner_rag import RemoteScanner, Scanner
from spscanner_rag.apps.serving.app import create_app
from spscanner_rag.scorers import check_read
from tests.apps.serving.conftest import client_of
from tests.attack.conftest import Attempt, assert_one_line
from tests.command_line import Run, run

__all__ = ["run"]

TEXT = "It rained. The keeper left."
ODD: list[Any] = [
    True,
    "half",
    "AUTO",
    "",
    "0.2",
    "all\x1b[2J\u202e",
    "x" * 10_000,
    -0.1,
    -1,
    1.000001,
    float("inf"),
    float("-inf"),
    float("nan"),
    10**400,
    -(10**400),
    [],
    ["auto"],
    {},
    {"share": 0.2},
]
BODIES = {
    "/v1/scan": {"query": "Who left?", "text": TEXT},
    "/rerank": {"query": "Who left?", "texts": [TEXT]},
    "/v1/rerank": {"query": "Who left?", "documents": [TEXT]},
    "/v2/rerank": {"query": "Who left?", "documents": [TEXT]},
    "/v1/score": {
        "requests": [{"query": "Who left?", "text": TEXT, "units": [[0, 10, None]]}]
    },
}


@pytest.mark.parametrize("number", range(len(ODD) + 4))
def test_an_odd_value_is_an_error_of_one_line(number: int, attempt: Attempt) -> None:
    read = [*ODD, 10**5000, None, b"all", 1j][number]
    with attempt("read: odd values"):
        with pytest.raises((TypeError, ValueError), match="read: got") as caught:
            check_read(read)
        assert_one_line(str(caught.value))
        assert len(str(caught.value)) < 200


@pytest.fixture(scope="module")
def client(tiny_scanner: Scanner) -> Iterator[httpx.Client]:
    """A client of a server in this process."""
    with client_of(create_app(tiny_scanner)) as asking:
        yield asking


@pytest.mark.allow_hosts(["127.0.0.1"])
@pytest.mark.parametrize("path", BODIES)
def test_a_server_refuses_it(path: str, client: httpx.Client, attempt: Attempt) -> None:
    headers = {"content-type": "application/json"}
    for read in ODD:
        body = json.dumps(BODIES[path] | {"read": read})
        with attempt("read: odd values over HTTP"):
            answer = client.post(path, content=body, headers=headers)
            assert 400 <= answer.status_code < 500, (read, answer.text)
            assert len(answer.text) < 1000
            assert "\x1b" not in answer.text
    honest = client.post(path, content=json.dumps(BODIES[path]), headers=headers)
    assert honest.status_code == 200


async def test_an_agent_is_told(tiny_scanner: Scanner, attempt: Attempt) -> None:
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    from spscanner_rag.apps.mcp import Library, create_server
    from tests.apps.mcp.conftest import Agent

    library = Library(tiny_scanner, ["."])
    agent = Agent(create_server(library))
    asked = {"question": "Who left?", "text": TEXT}
    # the protocol's client sends null for what is not finite
    finite = [read for read in ODD if repr(read) not in ("inf", "-inf", "nan")]
    for read in finite:
        with attempt("read: odd values of agents"):
            refused = await agent.refused("search_document", read=read, **asked)
            assert_one_line(refused)
            assert "read: got" in refused
    assert (await agent("search_document", **asked))["documents_read"] == 1
    library.close()


@pytest.mark.parametrize("read", ["-1", "nan", "inf", "1e400", "9" * 400, "half", ""])
def test_a_command_refuses_it(read: str, run: Run, tmp_path: Any) -> None:
    document = tmp_path / "a.txt"
    document.write_text(TEXT)
    for command in (
        ["scan", document, "-q", "Who left?"],
        ["batch", document, "--query", "Who left?", "--out", tmp_path / "out"],
        ["verify", document, document],
        ["compare", document, "-q", "Who left?", "--retrievers", "scanner"],
    ):
        run(*command, f"--read={read}").refuses("read: got")


@pytest.mark.parametrize("read", [10**400, "half", True, float("nan")])
def test_every_class_refuses_it(read: Any, tiny_scanner: Scanner) -> None:
    takes_it = [
        lambda: tiny_scanner.scan("Who left?", TEXT, read=read),
        lambda: tiny_scanner.scan_many([("Who left?", TEXT)], read=read),
        lambda: tiny_scanner.rank("Who left?", [TEXT], read=read),
        lambda: tiny_scanner.with_read(read),
        lambda: RemoteScanner("http://127.0.0.1:9", read=read),
    ]
    for call in takes_it:
        with pytest.raises((TypeError, ValueError), match="read: got"):
            call()
