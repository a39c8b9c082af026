"""The server for agents: in this process, over HTTP, and as a program."""

import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from spscanner_rag.apps.mcp import Library, create_server
from spscanner_rag.scan.meter import Meter
from spscanner_rag.scan.pipeline import Pipeline, ScannedText
from spscanner_rag.scan.requests import ScanRequest
from tests.apps.mcp.conftest import Agent
from tests.apps.serving.conftest import running


async def test_the_tools_only_read_and_say_their_form(library: Library) -> None:
    async with Client(create_server(library)) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == {"search_document", "search_folder", "read_passage"}
    for tool in tools.values():
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint
        assert not tool.annotations.open_world_hint
        assert tool.output_schema
        assert "context" not in tool.input_schema["properties"]


@contextmanager
def served(library: Library) -> Iterator[str]:
    """The address of a server over HTTP in this process."""
    app = create_server(library).streamable_http_app(
        stateless_http=True, max_request_body_size=2**20
    )
    with running(app) as address:
        yield f"{address}/mcp"


@pytest.mark.allow_hosts(["127.0.0.1"])
@pytest.mark.parametrize("by", ["streams", "HTTP"])
async def test_progress_and_cancelling(
    by: str, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[float] = []
    totals: list[float] = []

    async def progress(
        progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        told.append(progress)
        totals.append(math.inf if total is None else total)

    started, ended, over = threading.Event(), threading.Event(), threading.Event()

    def endless(
        own: Pipeline, requests: object, meter: Meter, *options: object, **more: object
    ) -> Iterator[ScannedText]:
        started.set()
        try:
            while not over.is_set():
                meter.check()
                time.sleep(0.01)
        finally:
            ended.set()
        yield from ()

    async with AsyncExitStack() as stack:
        server = (
            create_server(library)
            if by == "streams"
            else stack.enter_context(served(library))
        )
        client = await stack.enter_async_context(Client(server))
        await client.call_tool(
            "search_folder", {"question": "Who left?"}, progress_callback=progress
        )
        assert told == sorted(set(told))
        assert len(told) > 1
        pairs = zip(told, totals, strict=True)
        assert all(0 <= done <= total for done, total in pairs)
        monkeypatch.setattr(Pipeline, "run", endless)
        async with anyio.create_task_group() as group:
            group.start_soon(
                client.call_tool,
                "search_document",
                {"question": "Why?", "path": "keeper.txt"},
            )
            await anyio.to_thread.run_sync(started.wait, 10)
            group.cancel_scope.cancel()
        assert await anyio.to_thread.run_sync(ended.wait, 10)
        monkeypatch.undo()
        assert await Agent(server)(
            "search_document", question="Why?", path="keeper.txt"
        )


@pytest.mark.parametrize("many", [1, 8, 45, 60])
async def test_beside_many_long_calls_all_else_is_answered(
    many: int, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The calls hold no thread while they wait, and cancelling ends them."""
    begun, over = threading.Event(), threading.Event()
    run = Pipeline.run

    def held(
        own: Pipeline,
        requests: list[ScanRequest],
        meter: Meter,
        *options: Any,
        **m: Any,
    ) -> Any:
        if requests[0].query == "Who waits?":
            begun.set()
            while not over.is_set():
                meter.check()
                time.sleep(0.01)
        return run(own, requests, meter, *options, **m)

    monkeypatch.setattr(Pipeline, "run", held)
    text = "The keeper left the island in winter. " * 2_000
    async with Client(create_server(library)) as client:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                for number in range(many):
                    group.start_soon(
                        client.call_tool,
                        "search_document",
                        {"question": "Who waits?", "text": f"{text}{number}"},
                    )
                assert await anyio.to_thread.run_sync(begun.wait, 30)
                assert (await client.list_tools()).tools
                short = {"question": "Who left?", "path": "keeper.txt"}
                found = await client.call_tool("search_document", short)
                assert not found.is_error
                group.cancel_scope.cancel()
    async with Client(create_server(library)) as client:
        with anyio.fail_after(60):
            assert not (await client.call_tool("search_document", short)).is_error
    over.set()
    assert not library._reader.queue.waiting


@pytest.mark.allow_hosts(["127.0.0.1"])
async def test_two_clients_ask_by_http_at_once(library: Library) -> None:
    found: list[dict[str, Any]] = []

    async def ask(address: str, question: str) -> None:
        found.append(await Agent(address)("search_folder", question=question))

    with served(library) as address:
        async with anyio.create_task_group() as group:
            for question in ("Who left?", "Who signed the treaty?"):
                group.start_soon(ask, address, question)
        assert [each["documents_read"] for each in found] == [3, 3]
        async with Client(address) as client:
            with pytest.raises(Exception, match=r"(?i)error|large|413"):
                await client.call_tool(
                    "search_document", {"question": "Who?", "text": "x" * 2**21}
                )
        assert await Agent(address)(
            "search_document", question="Who left?", path="keeper.txt"
        )


@pytest.mark.slow
async def test_the_program_speaks_by_its_standard_streams(
    tiny_checkpoint: Path, folder: Path
) -> None:
    arguments = [
        "-m",
        "spscanner_rag.apps.cli",
        *f"mcp {folder} --no-cache --model {tiny_checkpoint}".split(),
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    started = StdioServerParameters(
        command=sys.executable, args=arguments, env=environment
    )
    asked = {"question": "Who left?", "path": "keeper.txt"}
    async with Client(stdio_client(started)) as client:
        first = await client.call_tool("search_document", asked)
        content: Any = first.structured_content
        assert len(content["documents"][0]["passages"]) == 5
        large = await client.call_tool(
            "search_document", asked | {"path": "", "text": "x" * 50_000_000}
        )
        assert "8000000 characters" in str(large.content)
        assert (
            await client.call_tool("search_document", asked)
        ).content == first.content


def test_a_folder_that_is_not_there_is_refused_first(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    run("mcp", tmp_path / "none", "--model", "does-not-exist").refuses(
        "none: no such folder"
    )
