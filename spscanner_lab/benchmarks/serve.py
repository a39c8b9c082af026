"""The cost of a server: many clients compared with one call, and short requests beside a long one."""

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
from typing import Any

from spscanner_lab.benchmarks.report import Commands
from spscanner_lab.benchmarks.texts import QUESTION, example_text, short_texts

# tokens per second of many clients, as a share of a single `Scanner.scan_many` call
REQUIRED_SHARE = 0.9
MOST_SHARES = 3.0
"""The longest wait of a short request beside a long one, in shares; a share is twice
its time on its own."""

_WAITED = "longest wait of a short request beside the long one, in shares"


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
        fair = asyncio.run(_short_beside_long(address, texts, long))
    share = alone / together
    rows: dict[str, object] = {
        "seconds, one call of scan_many": alone,
        f"seconds, {arguments.clients} clients": together,
        "tokens/s of the clients over those of the call": share,
        **fair,
    }
    return rows, share >= REQUIRED_SHARE and fair[_WAITED] <= MOST_SHARES


def _scan_many(model: str | None, texts: list[str]) -> float:
    """Seconds of one call, in which each text is its own collection, as for a client.

    The better of two.
    """
    from spscanner_rag import Scanner

    scanner = Scanner.from_pretrained(model)
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        scanner.scan_many([(QUESTION, text) for text in texts])
        seconds.append(time.perf_counter() - started)
    return min(seconds[1:])


@contextmanager
def _server(options: list[str]) -> Iterator[str]:
    """Yield the address of a server in a separate process."""
    command = [sys.executable, "-m", "spscanner_rag.apps.cli", "serve", *options]
    command += ["--port", "0", "--max-waiting", "100000"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        found = next(
            filter(
                None,
                (
                    re.search(r"running on (http://\S+)", line)
                    for line in process.stderr
                ),
            ),
            None,
        )
        if found is None:
            raise OSError("the server did not start")
        threading.Thread(
            target=process.stderr.read
        ).start()  # an unread log would block the server
        try:
            yield found.group(1)
        finally:
            process.terminate()


async def _ask(client: Any, query: str, text: str) -> float:  # noqa: ANN401 - httpx.AsyncClient
    """Seconds of one request."""
    started = time.perf_counter()
    answer = await client.post(
        "/v1/scan", json={"query": query, "text": text, "top_k": 5}
    )
    answer.raise_for_status()
    return time.perf_counter() - started


async def _many_clients(address: str, texts: list[str], clients: int) -> float:
    """Seconds until clients, which each ask for one text after the other, have all texts; the better of two."""
    import httpx

    seconds = []
    async with AsyncExitStack() as open_clients:
        own = [  # made before timing starts: each takes 20 ms to read certificates
            await open_clients.enter_async_context(
                httpx.AsyncClient(base_url=address, timeout=600)
            )
            for _ in range(clients)
        ]
        for _ in range(3):
            waiting = iter(texts)

            async def one(
                client: httpx.AsyncClient, waiting: Iterator[str] = waiting
            ) -> None:
                for text in waiting:
                    await _ask(client, QUESTION, text)

            started = time.perf_counter()
            await asyncio.gather(*map(one, own))
            seconds.append(time.perf_counter() - started)
    return min(seconds[1:])


async def _short_beside_long(
    address: str, shorts: list[str], long: str
) -> dict[str, float]:
    """Seconds of short requests, one after the other, before and while a long document is read."""
    import httpx

    async with httpx.AsyncClient(base_url=address, timeout=600) as client:
        without = sorted(
            [await _ask(client, QUESTION, short) for short in shorts[:100]]
        )
        reading = asyncio.ensure_future(_ask(client, QUESTION, long))
        await asyncio.sleep(0.2)
        beside: list[float] = []
        while (
            not beside or not reading.done()
        ):  # at least one, however fast the machine
            beside.append(
                await _ask(client, QUESTION, shorts[len(beside) % len(shorts)])
            )
        await reading
    usual = without[len(without) // 2]
    return {
        "seconds of a short request, median": usual,
        "short requests beside the long one": float(len(beside)),
        "seconds, longest of these": max(beside),
        _WAITED: max(beside) / (2 * usual),
    }
