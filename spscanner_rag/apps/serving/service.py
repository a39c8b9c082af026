"""The service behind all routes: it checks sizes, has texts read, and cancels the jobs of lost clients."""

import asyncio
import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from hashlib import sha256
from io import BytesIO
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from fastapi import Request
from fastapi.responses import StreamingResponse

from spscanner_rag.apps.serving.limits import Limits, RefusedError
from spscanner_rag.apps.serving.reading_queue import Job, ReadingQueue
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.results import ScanResult
from spscanner_rag.results.selection import sigmoid
from spscanner_rag.scan.pipeline import ScanRequest, Scored
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Progress, ScanCancelled
from spscanner_rag.text.units import Unit

COLLECTIONS = 8  # uploaded collections that are kept; the one used longest ago is dropped first


class Service:
    """A scanner for many clients, within limits."""

    def __init__(self, scanner: Scanner, limits: Limits) -> None:
        self.scanner, self.limits = scanner, limits
        self._fingerprint = scanner.checkpoint.fingerprint()  # now: its files may be replaced later
        self.queue = ReadingQueue(scanner.pipeline, limits)
        self._collections: OrderedDict[str, CollectionIndex] = OrderedDict()

    def pairs(self, query: str, texts: Sequence[str]) -> list[ScanRequest]:
        """One question on several texts. ``RefusedError``: 413 beyond the limits, 422 for an unusable question."""
        self.check_size(texts, len(query))
        return [self.checked(query, text) for text in texts]

    def checked(
        self, query: str, text: str, units: Sequence[Unit] | None = None, collection: str | None = None
    ) -> ScanRequest:
        """A request for the pipeline; errors as `pairs`, and 404 for a collection that is not known."""
        try:
            request = self.scanner.pipeline.request(query, text, units)
        except ValueError as error:
            raise RefusedError(422, str(error)) from None
        return request if collection is None else request._replace(collection=self._collection(collection))

    def check_size(self, texts: Sequence[str], question: int = 0) -> None:
        """Raise ``RefusedError`` with 413 for too many texts or characters."""
        most, characters = self.limits, sum(map(len, texts)) + question * len(texts)
        if len(texts) > most.documents:
            raise RefusedError(
                413, f"got {len(texts)} texts; expected at most {most.documents}: split the request"
            )
        if characters > most.request_characters:
            raise RefusedError(
                413,
                f"got {characters} characters, the question counted for each text; expected at most "
                f"{most.request_characters}: split the request",
            )

    async def read(
        self,
        requests: Sequence[ScanRequest],
        asking: Request,
        *,
        together: bool = True,
        progress: Progress | None = None,
    ) -> list[Scored]:
        """Have texts read for an HTTP request whose body was received.

        Raises ``RefusedError`` (429, 503, 504), ``ScanCancelled`` if the client went away.
        """
        if not requests:
            return []
        client = asking.client.host if asking.client else ""
        job = Job(requests, client, self.limits.seconds, together, progress)
        self.queue.submit(job)
        reading = asyncio.wrap_future(job.future)
        leaving = asyncio.ensure_future(_gone(asking))
        try:
            either: set[asyncio.Future[Any]] = {reading, leaving}
            await asyncio.wait(either, timeout=job.seconds, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                raise ScanCancelled("the client went away") if leaving.done() else self._too_late()
            return reading.result()
        except ScanCancelled:
            raise self._too_late() from None if job.late else ScanCancelled("the client went away")
        finally:
            job.cancel()
            leaving.cancel()
            reading.cancel()

    def _too_late(self) -> RefusedError:
        return RefusedError(
            504, f"no answer within {self.limits.seconds:g} s; send fewer or shorter texts", retry_after=5
        )

    async def read_in_lines(
        self,
        requests: Sequence[ScanRequest],
        asking: Request,
        describe: Callable[[list[Scored]], Awaitable[dict[str, Any]]],
    ) -> StreamingResponse:
        """Answer in lines of JSON: progress as often as the client takes it, then what ``describe`` makes.

        A request that is refused before it is read gets its status, not a line.
        """
        lines = self._progress(requests, asking, describe)
        return StreamingResponse(_encoded(await anext(lines), lines), media_type="application/x-ndjson")

    async def _progress(
        self,
        requests: Sequence[ScanRequest],
        asking: Request,
        describe: Callable[[list[Scored]], Awaitable[dict[str, Any]]],
    ) -> AsyncIterator[dict[str, Any]]:
        loop, changed, newest = asyncio.get_running_loop(), asyncio.Event(), (0, 0)

        def progress(done: int, total: int) -> None:  # called in a reading thread
            nonlocal newest
            newest = (done, total)
            loop.call_soon_threadsafe(changed.set)

        reading = asyncio.ensure_future(self.read(requests, asking, progress=progress))
        try:
            while not reading.done():
                waiting = asyncio.ensure_future(changed.wait())
                await asyncio.wait({reading, waiting}, return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
                if changed.is_set() and not reading.done():
                    changed.clear()
                    yield {"progress": {"tokens": newest[0], "of": newest[1]}}
            yield await describe(reading.result())
        finally:
            reading.cancel()

    def results(self, scored: Iterable[Scored]) -> list[ScanResult]:
        """Return what was read as results that select passages."""
        count = self.scanner.count_tokens
        return [one.result(count) for one in scored]

    def keep_collection(self, digest: str, content: bytes) -> None:
        """Keep a collection's ``.npz`` of words; ``RefusedError`` 422 if it is damaged or has another digest."""
        if sha256(content).hexdigest() != digest:
            raise RefusedError(422, "the collection's SHA-256 is not the one in its address; send it again")
        try:
            with ZipFile(BytesIO(content)) as archive:  # `numpy.savez` does not compress
                if sum(entry.file_size for entry in archive.infolist()) > len(content):
                    raise ValueError("it is compressed")
            with np.load(BytesIO(content), allow_pickle=False) as arrays:
                index = CollectionIndex.from_arrays(dict(arrays))
        except (ValueError, OSError, KeyError, EOFError, BadZipFile) as error:
            raise RefusedError(422, f"the collection cannot be read: {error}") from None
        self._collections[digest] = index
        self._collections.move_to_end(digest)
        while len(self._collections) > COLLECTIONS:
            self._collections.popitem(last=False)

    def _collection(self, digest: str) -> CollectionIndex:
        if digest not in self._collections:
            raise RefusedError(404, f"collection {digest} is not known; PUT it to /v1/collections/{digest}")
        self._collections.move_to_end(digest)
        return self._collections[digest]

    def describe(self) -> dict[str, Any]:
        """The model, for ``/v1/models``."""
        scanner, settings = self.scanner, self.scanner.checkpoint.settings
        return {
            "id": scanner.checkpoint.source,
            "object": "model",
            "owned_by": "spscanner-rag",
            "sha256": self._fingerprint,
            "segmenter": scanner.reading.segmenter.name,
            "uses_collection": scanner.uses_collection,
            "window_tokens": settings.window_tokens,
            "device": str(scanner.device),
            "dtype": str(scanner.dtype).removeprefix("torch."),
        }


def relevance(logit: float) -> float:
    """Return a document's score as a number from 0 to 1, as clients expect it."""
    return float(sigmoid(np.array([logit]))[0])


async def _gone(asking: Request) -> None:
    """Return when the client has gone away."""
    while (await asking.receive())["type"] != "http.disconnect":
        pass


async def _encoded(first: dict[str, Any], lines: AsyncIterator[dict[str, Any]]) -> AsyncIterator[bytes]:
    yield _line(first)
    try:
        async for line in lines:
            yield _line(line)
    except RefusedError as error:
        yield _line({"error": {"status": error.status, "message": error.message}})
    except ScanCancelled:
        return


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode() + b"\n"
