"""A long load on the server and the server for agents, over HTTP and streams.

Clients ask, cancel, leave and lie. Memory stays flat, every honest answer is right, and
a short question does not wait for a long one.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from spscanner_lab.benchmarks.report import Commands
from spscanner_rag.system.kept_values import BYTES_VARIABLE

if TYPE_CHECKING:
    from httpx import AsyncClient
    from mcp import Client

MOST_TIMES_ALONE = 3.0
"""The longest 95th percentile of a short question beside long ones, in times alone."""

MOST_GROWTH = 1.1
"""The most memory of the last quarter, in times that of the second quarter."""

_KEPT_BYTES = 2**25
"""What a server may keep for later questions: full long before the second quarter, so
that any later growth is a leak."""

_ADDRESS = re.compile(r"running on (http://\S+)")
_COMMAND = [sys.executable, "-m", "spscanner_rag.apps.cli"]
_QUESTION = "Who left the island?"
_FILLER = "It rained on the roof of the mill on day {}. "
_LEFT_SECONDS = 1.0  # how long the work of a question that was given up may take
_LEAST_PAUSE = 0.05  # seconds between two short questions
_SECONDS_ALONE = 0.15  # share of the time in which only short questions are asked
_ROUNDS = 4  # alone and beside long ones in turns: other programs may come and go

Ask = Callable[[str], Awaitable[str]]
"""Asks `_QUESTION` of a text, and returns the answer as text."""


@dataclass(frozen=True)
class Load:
    """What the clients of a server do.

    Parameters
    ----------
    seconds : float
        How long they ask.
    long_sentences : int
        Sentences of a long text.
    pause : float
        Seconds between two questions of a client on long texts; ten times the pause
        between two on short ones.
    """

    seconds: float
    long_sentences: int
    pause: float


@dataclass
class Seen:
    """What the clients of one server saw.

    Parameters
    ----------
    counts : Counter
        Calls by kind: asked, wrong, cancelled, left, refused, not refused.
    alone, beside : list of float
        Seconds of short questions, without and with a long question at the same time.
    memory : list of float
        Megabytes of the process at intervals of a second.
    processor_seconds : float
        Of the server's process.
    long_questions : int
        Long questions that are being answered now.
    """

    counts: Counter[str] = field(default_factory=Counter)
    alone: list[float] = field(default_factory=list)
    beside: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    processor_seconds: float = 0.0
    long_questions: int = 0

    def rows(self, name: str) -> tuple[dict[str, object], bool]:
        """Rows of the report, and whether all bounds hold."""
        times_alone = _percentile(self.beside) / _percentile(self.alone)
        quarter = max(1, len(self.memory) // 4)
        before = max(self.memory[quarter : 2 * quarter] or self.memory)
        growth = max(self.memory[-quarter:]) / before
        rows: dict[str, object] = {
            f"{name}: calls": dict(self.counts),
            f"{name}: p95 of a short question alone, seconds": _percentile(self.alone),
            f"{name}: p95 beside long ones, in times alone": times_alone,
            f"{name}: short questions alone and beside": (
                f"{len(self.alone)} and {len(self.beside)}"
            ),
            f"{name}: megabytes at the end": self.memory[-1],
            f"{name}: memory, in times that of the second quarter": growth,
            f"{name}: megabytes more in an hour, second half": self._slope(),
            f"{name}: cores used": self.processor_seconds / len(self.memory),
        }
        is_right = self.counts["wrong"] == 0 and self.counts["not refused"] == 0
        is_quick = times_alone <= MOST_TIMES_ALONE
        return rows, is_right and is_quick and growth <= MOST_GROWTH

    def _slope(self) -> float:
        """Megabytes more in an hour: the slope of a line through the second half."""
        half = np.asarray(self.memory[len(self.memory) // 2 :])
        if len(half) < 2:
            return 0.0
        return float(np.polyfit(np.arange(len(half)), half, 1)[0]) * 3600


def _percentile(seconds: list[float]) -> float:
    ordered = sorted(seconds) or [float("nan")]
    return ordered[int(0.95 * (len(ordered) - 1))]


def add_commands(commands: Commands) -> list[argparse.ArgumentParser]:
    """Add `soak`."""
    command = commands.add_parser("soak", help="servers under clients of all kinds")
    command.add_argument("--minutes", type=float, default=60.0)
    command.add_argument("--model", help="checkpoint (default: the bundled one)")
    command.add_argument("--long-sentences", type=int, default=4_000)
    command.add_argument(
        "--pause",
        type=float,
        default=0.0,
        help="seconds between a client's long questions",
    )
    command.set_defaults(measure=measure_soak)
    return [command]


def measure_soak(arguments: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """Load the three servers, one after another, for a third of the time each."""
    options = [] if arguments.model is None else ["--model", arguments.model]
    load = Load(60 * arguments.minutes / 3, arguments.long_sentences, arguments.pause)
    rows: dict[str, object] = {}
    ok = True
    for name, loaded in (("serve", _serve), ("mcp, HTTP", _http), ("mcp", _streams)):
        seen = asyncio.run(loaded(options, load))
        of_server, holds = seen.rows(name)
        rows |= of_server
        ok = ok and holds
    return rows, ok


async def _serve(options: list[str], load: Load) -> Seen:
    from httpx import AsyncClient

    with _program(["serve", "--port", "0", *options]) as (process, address):
        async with AsyncClient(base_url=address, timeout=300) as client:

            async def ask(text: str) -> str:
                body = {"query": _QUESTION, "text": text, "top_k": 1}
                return (await client.post("/v1/scan", json=body)).text

            return await _loaded(process.pid, ask, _lies_to_server(client), load)


def _lies_to_server(client: AsyncClient) -> Ask:
    async def lie(body: str) -> str:
        answer = await client.post("/v1/scan", content=body.encode())
        return "" if 400 <= answer.status_code < 500 else answer.text

    return lie


async def _http(options: list[str], load: Load) -> Seen:
    from mcp import Client

    with tempfile.TemporaryDirectory() as folder:
        command = ["mcp", folder, "--no-cache", "--port", "0", *options]
        with _program(command) as (process, address):
            async with Client(f"{address}/mcp") as client:
                return await _loaded_by_agent(process.pid, client, load)


async def _streams(options: list[str], load: Load) -> Seen:
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    with tempfile.TemporaryDirectory() as folder:
        arguments = [*_COMMAND[1:], "mcp", folder, "--no-cache", *options]
        server = StdioServerParameters(
            command=_COMMAND[0], args=arguments, env=_environment()
        )
        async with Client(stdio_client(server)) as client:
            (pid,) = _children_named(folder)
            return await _loaded_by_agent(pid, client, load)


async def _loaded_by_agent(pid: int, client: Client, load: Load) -> Seen:
    async def ask(text: str) -> str:
        arguments: dict[str, Any] = {"question": _QUESTION, "text": text}
        return str((await client.call_tool("search_document", arguments)).content)

    async def lie(text: str) -> str:
        arguments: dict[str, Any] = {"id": f"#0-9@{text[:22]}", "neighbours": 50}
        result = await client.call_tool("read_passage", arguments)
        return "" if result.is_error else str(result.content)

    return await _loaded(pid, ask, lie, load)


async def _loaded(pid: int, ask: Ask, lie: Ask, load: Load) -> Seen:
    """Load a server in rounds."""
    seen = Seen()
    for _ in range(_ROUNDS):
        await _round(pid, ask, lie, load, seen)
    return seen


async def _round(pid: int, ask: Ask, lie: Ask, load: Load, seen: Seen) -> None:
    """First only short questions are asked, then all kinds of clients come."""
    now = time.monotonic()
    begin = now + _SECONDS_ALONE * load.seconds / _ROUNDS
    end = now + load.seconds / _ROUNDS
    clients = (
        _ask_short(ask, seen, load, end),
        _ask_long(ask, seen, load, begin, end),
        _cancel(ask, seen, load, begin, end),
        _lie(lie, seen, end),
        _watch(pid, seen, end),
    )
    await asyncio.gather(*clients)


async def _ask_short(ask: Ask, seen: Seen, load: Load, end: float) -> None:
    number = 0
    while time.monotonic() < end:
        number += 1
        text = f"{_FILLER.format(number)}Keeper {number} left the island. " * 8
        is_beside = seen.long_questions > 0
        began = time.monotonic()
        answer = await ask(text)
        waits = seen.beside if is_beside or seen.long_questions else seen.alone
        waits.append(time.monotonic() - began)
        seen.counts["asked"] += 1
        if f"Keeper {number} left" not in answer:
            seen.counts["wrong"] += 1
        await asyncio.sleep(_LEAST_PAUSE + load.pause / 10)


def _long_text(load: Load) -> tuple[str, str]:
    """A long text, and the name of who left the island."""
    first = random.randrange(10**9)
    sentences = [_FILLER.format(first + day) for day in range(load.long_sentences)]
    keeper = f"Keeper {first} left the island. "
    sentences.insert(random.randrange(load.long_sentences), keeper)
    return "".join(sentences), f"Keeper {first} left"


async def _ask_long(ask: Ask, seen: Seen, load: Load, begin: float, end: float) -> None:
    """Ask long questions, one after another; the last is left at the end."""
    await asyncio.sleep(begin - time.monotonic())
    while time.monotonic() < end:
        text, keeper = _long_text(load)
        seen.long_questions += 1
        with suppress(TimeoutError):
            async with asyncio.timeout(end - time.monotonic()):
                answer = await ask(text)
                seen.counts["asked long"] += 1
                seen.counts["wrong"] += keeper not in answer
        seen.long_questions -= 1
        await asyncio.sleep(load.pause)


async def _cancel(ask: Ask, seen: Seen, load: Load, begin: float, end: float) -> None:
    """Ask long questions and give up on each."""
    await asyncio.sleep(begin - time.monotonic())
    while time.monotonic() < end:
        text, _ = _long_text(load)
        seen.long_questions += 1
        task = asyncio.ensure_future(ask(text))
        await asyncio.sleep(random.uniform(0.05, 2))
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        seen.counts["cancelled"] += 1
        await asyncio.sleep(_LEFT_SECONDS)
        seen.long_questions -= 1
        await asyncio.sleep(load.pause)


async def _lie(lie: Ask, seen: Seen, end: float) -> None:
    """Send what must be refused."""
    while time.monotonic() < end:
        answer = await lie('{"query": 5, "text": ["It rained."]}')
        seen.counts["not refused" if answer else "refused"] += 1
        await asyncio.sleep(0.2)


async def _watch(pid: int, seen: Seen, end: float) -> None:
    before = _processor_seconds(pid)
    while time.monotonic() < end:
        seen.memory.append(_megabytes(pid))
        await asyncio.sleep(1)
    seen.processor_seconds += _processor_seconds(pid) - before


def _processor_seconds(pid: int) -> float:
    """Seconds that a process has used of all cores."""
    status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    user, system = status.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _megabytes(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024 / 1e6


def _children_named(argument: str) -> list[int]:
    """The processes that have this argument."""
    pids: list[int] = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            command = (folder / "cmdline").read_bytes().split(b"\0")
            if argument.encode() in command:
                pids.append(int(folder.name))
    return pids


@contextmanager
def _program(arguments: list[str]) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A server's process and its address."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [*_COMMAND, *arguments], stderr=log, stdout=log, env=_environment()
        )
        try:
            yield process, _address_in(log, process)
        finally:
            process.kill()
            process.wait()


def _environment() -> dict[str, str]:
    return {**os.environ, BYTES_VARIABLE: str(_KEPT_BYTES)}


def _address_in(log: IO[bytes], process: subprocess.Popen[bytes]) -> str:
    while process.poll() is None:
        log.seek(0)
        match = _ADDRESS.search(log.read().decode(errors="replace"))
        if match is not None:
            return match[1].rstrip(")")
        time.sleep(0.2)
    raise RuntimeError("the server has ended")
