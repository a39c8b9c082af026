"""A web server that scans documents for many clients at once.

It is one process with one event loop.

`app` is an ASGI application without dependencies; any ASGI server runs it:

    uvicorn --app-dir examples async_server:app    # then: /search?q=Who+is+Sir+Walter

With several workers (uvicorn's --workers), each loads its own scanner. If a server
loads the app before it forks (gunicorn --preload), workers share one, and each computes
with one thread: docs/langchain.md, "Several processes".

Run as a script, it needs no server and no socket: clients call `app` as a server would.
One of them hangs up.

    pip install ".[langchain]"
    python examples/async_server.py
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, MutableMapping
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

try:
    from langchain_spscanner import SPScannerRetriever
except ImportError as error:
    sys.exit(str(error))

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

NOVEL = Path(__file__).parent / "data" / "persuasion.txt"
CHARACTERS = 2_000  # short, so that the example takes seconds
CLIENTS = 24

retriever = SPScannerRetriever.from_texts(
    [NOVEL.read_text(encoding="utf-8")[:CHARACTERS]],
    [{"source": "persuasion.txt"}],
    k=3,
)


async def app(scope: Message, receive: Receive, send: Send) -> None:
    """Answer /search?q=... with the best sentences.

    Stop scanning when the client hangs up.
    """
    if scope["type"] != "http":
        return
    query = parse_qs(scope["query_string"].decode()).get("q", [""])[0]
    scan = asyncio.ensure_future(retriever.ainvoke(query))
    gone = asyncio.ensure_future(_hung_up(receive))
    await asyncio.wait({scan, gone}, return_when=asyncio.FIRST_COMPLETED)
    for task in (gone, scan):
        # a finished task ignores this; the other one ends, and with it the scan
        task.cancel()
    (found,) = await asyncio.gather(scan, return_exceptions=True)
    if isinstance(found, asyncio.CancelledError):
        return
    if isinstance(found, ValueError):  # no query
        await _answer(send, 400, {"error": str(found)})
    elif isinstance(found, BaseException):
        raise found
    else:
        sentences = [{"text": d.page_content, **d.metadata} for d in found]
        await _answer(send, 200, {"query": query, "sentences": sentences})


async def _hung_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _answer(send: Send, status: int, body: object) -> None:
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send(
        {
            "type": "http.response.body",
            "body": json.dumps(body, ensure_ascii=False).encode(),
        }
    )


async def client(query: str, patience: float | None = None) -> tuple[int, Any] | None:
    """Call `app` as a server would.

    Returns status and body, or None if the client hung up after ``patience`` seconds.
    """
    sent: list[Message] = []
    asked = False

    async def receive() -> Message:
        nonlocal asked
        if not asked:
            asked = True
            return {"type": "http.request", "body": b""}
        await asyncio.sleep(3600 if patience is None else patience)
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(
        {"type": "http", "query_string": urlencode({"q": query}).encode()},
        receive,
        send,
    )
    return (sent[0]["status"], json.loads(sent[1]["body"])) if sent else None


async def tick(times: list[float]) -> None:
    while True:
        times.append(time.perf_counter())
        await asyncio.sleep(0.01)


async def main() -> None:
    await client("Who is it?")  # loads the model
    times: list[float] = []
    ticking = asyncio.ensure_future(tick(times))
    begun = time.perf_counter()
    waiting = [
        client(f"What did Sir Walter read, question {number}?")
        for number in range(CLIENTS)
    ]
    hasty = client("Who was Elizabeth?", patience=0.05)
    empty = client("")
    *answers, hung_up, refused = await asyncio.gather(*waiting, hasty, empty)
    seconds = time.perf_counter() - begun
    ticking.cancel()
    pauses = [later - earlier for earlier, later in pairwise(times)]

    assert all(answer is not None and answer[0] == 200 for answer in answers)
    print(f"{len(answers)} clients were answered in {seconds:.1f} s")
    print(
        f"the event loop ticked {len(times)} times meanwhile, the longest pause was"
        f" {max(pauses) * 1000:.0f} ms"
    )
    print(
        f"the client that hung up got {hung_up}, the one without a question"
        f" {refused and refused[0]}"
    )
    first = answers[0]
    if first is not None:
        for sentence in first[1]["sentences"]:
            where = (
                f"{sentence['source']}"
                f" {sentence['start_index']}-{sentence['end_index']}"
            )
            print(
                f"{sentence['relevance_score']:.3f}  {where} "
                f" {' '.join(sentence['text'].split())}"
            )


if __name__ == "__main__":
    asyncio.run(main())
