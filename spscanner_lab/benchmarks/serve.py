"""The cost of a server: many clients, and short requests beside a long one.

Many clients are compared with one call.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import IO, TYPE_CHECKING

from spscanner_lab.benchmarks.report import Commands
from spscanner_lab.benchmarks.texts import QUESTION, example_text, short_texts

if TYPE_CHECKING:
    from httpx import AsyncClient

# tokens per second of many clients, as a share of a single `Scanner.scan_many` call
REQUIRED_SHARE = 0.9

MOST_SHARES = 3.0
"""The longest wait of a short request beside a long one, in shares; a share is twice
its time on its own."""

_ALONE = 100  # short requests before the long one
_WAITED = "longest wait of a short request beside the long one, in shares"
_ADDRESS = re.compile(r"running on (http://\S+)")


def add_commands(commands: Commands) -> list[argparse.ArgumentParser]:
    """Add `serve`."""
    command = commands.add_parser("serve", help="`spscanner serve` under load")
    command.add_argument("--clients", type=int, default=64)
    command.add_argument(
        "--texts", type=int, default=640, help="documents of all clients together"
    )
    command.add_argument(
        "--megabytes", type=float, default=3.0, help="size of the long document"
    )
    command.add_argument("--model", help="checkpoint (default: the bundled one)")
    command.set_defaults(measure=measure_serve)
    return [command]


def measure_serve(arguments: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """Throughput and fairness of one server on this machine."""
    texts = short_texts(arguments.texts, 400)
    options = [] if arguments.model is None else ["--model", arguments.model]
    alone = _scan_many(arguments.model, texts)
    with _server(options) as address:
        together = asyncio.run(_many_clients(address, texts, arguments.clients))
        long = example_text(round(arguments.megabytes * 1e6))
        fairness = asyncio.run(_short_beside_long(address, texts, long))
    share = alone / together
    rows: dict[str, object] = {
        "seconds, one call of scan_many": alone,
        f"seconds, {arguments.clients} clients": together,
        "tokens/s of the clients over those of the call": share,
        **fairness,
    }
    return rows, share >= REQUIRED_SHARE and fairness[_WAITED] <= MOST_SHARES


def _scan_many(model: str | None, texts: list[str]) -> float:
    """Seconds of one call, in which each text is its own collection, as for a client.

    The better of two.
    """
    from spscanner_rag import Scanner

    scanner = Scanner.from_pretrained(model)
    pairs = [(QUESTION, text) for text in texts]
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        scanner.scan_many(pairs)
        seconds.append(time.perf_counter() - started)
    return min(seconds[1:])


@contextmanager
def _server(options: list[str]) -> Iterator[str]:
    """Yield the address of a server in a separate process."""
    command = [sys.executable, "-m", "spscanner_rag.apps.cli", "serve", *options]
    command += ["--port", "0", "--max-waiting", "100000"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        address = _address_in(process.stderr)
        # an unread log would block the server
        threading.Thread(target=process.stderr.read).start()
        try:
            yield address
        finally:
            process.terminate()


def _address_in(log: IO[str]) -> str:
    for line in log:
        match = _ADDRESS.search(line)
        if match is not None:
            return match[1]
    raise OSError("the server did not start")


async def _request(client: AsyncClient, query: str, text: str) -> float:
    """Seconds of one request."""
    started = time.perf_counter()
    answer = await client.post(
        "/v1/scan", json={"query": query, "text": text, "top_k": 5}
    )
    answer.raise_for_status()
    return time.perf_counter() - started


async def _request_each(client: AsyncClient, texts: Iterator[str]) -> None:
    """Request one text after the other, until there are no more."""
    for text in texts:
        await _request(client, QUESTION, text)


async def _many_clients(address: str, texts: list[str], number: int) -> float:
    """Seconds until clients have scanned all texts.

    Each asks for one text after the other. The better of two.
    """
    import httpx

    seconds = []
    async with AsyncExitStack() as open_clients:
        # made before timing starts: each takes 20 ms to read certificates
        clients = []
        for _ in range(number):
            client = httpx.AsyncClient(base_url=address, timeout=600)
            clients.append(await open_clients.enter_async_context(client))
        for _ in range(3):
            waiting = iter(texts)
            started = time.perf_counter()
            await asyncio.gather(
                *(_request_each(client, waiting) for client in clients)
            )
            seconds.append(time.perf_counter() - started)
    return min(seconds[1:])


async def _short_beside_long(
    address: str, shorts: list[str], long: str
) -> dict[str, float]:
    """Seconds of short requests, before and while a long document is read.

    They come one after the other.
    """
    import httpx

    async with httpx.AsyncClient(base_url=address, timeout=600) as client:
        alone = []
        for short in shorts[:_ALONE]:
            alone.append(await _request(client, QUESTION, short))
        reading = asyncio.ensure_future(_request(client, QUESTION, long))
        await asyncio.sleep(0.2)
        beside: list[float] = []
        # at least one, however fast the machine
        while not beside or not reading.done():
            short = shorts[len(beside) % len(shorts)]
            beside.append(await _request(client, QUESTION, short))
        await reading
    usual = sorted(alone)[len(alone) // 2]
    return {
        "seconds of a short request, median": usual,
        "short requests beside the long one": float(len(beside)),
        "seconds, longest of these": max(beside),
        _WAITED: max(beside) / (2 * usual),
    }
