"""The service behind all routes: it checks sizes, has texts read, and cancels the jobs of lost clients."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from io import BytesIO
from threading import Event, Lock
from typing import Any, Generic, TypeVar
from zipfile import ZipFile

import numpy as np
from fastapi import Request
from fastapi.responses import StreamingResponse

from spscanner_rag.apps.serving.access import Limits, RefusedError
from spscanner_rag.apps.serving.reading_queue import Job, ReadingQueue
from spscanner_rag.files.documents import TextFile
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.results import ScanResult
from spscanner_rag.scan.pipeline import ScanRequest
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Progress, ScanCancelled, stop_if
from spscanner_rag.text.units import Unit

T = TypeVar("T")

COLLECTION_BYTES = 256 * 2**20
"""Memory of the uploaded collections that are kept."""

DOCUMENT_BYTES = 128 * 2**20
"""Memory of the page's documents that are kept, read and cut, for further questions."""

TOLD_EACH = 0.05  # seconds: how often progress is told

CutDocument = tuple[TextFile, Sequence[Unit]]
Describe = Callable[[list[ScanResult]], Awaitable[dict[str, Any]]]

_WORD_BYTES = 400  # of a word of a collection, with the tables of its stem
_WORKERS = 2  # texts are counted and converted in so many threads; others wait


class Kept(Generic[T]):
    """Values by digest, of at most so many bytes: those that were used longest ago make room. Thread-safe."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._lock = Lock()
        self._values: dict[str, tuple[T, int]] = {}  # the last used at the end

    def put(self, digest: str, value: T, size: int) -> None:
        """Keep a value of so many bytes; not one that is larger than all may be."""
        if size > self.most_bytes:
            return
        with self._lock:
            self._values.pop(digest, None)
            self._values[digest] = value, size
            while sum(own for _, own in self._values.values()) > self.most_bytes:
                del self._values[next(iter(self._values))]

    def get(self, digest: str) -> T | None:
        """The value, if it is kept."""
        with self._lock:
            if digest not in self._values:
                return None
            self._values[digest] = found = self._values.pop(digest)
            return found[0]


class Service:
    """A scanner for many clients, within limits."""

    def __init__(self, scanner: Scanner, limits: Limits) -> None:
        self.scanner, self.limits = scanner, limits
        self._fingerprint = scanner.checkpoint.fingerprint()  # now: its files may be replaced later
        self.queue = ReadingQueue(scanner.pipeline, limits)
        self.one_at_a_time = ThreadPoolExecutor(1)  # for what takes many times the memory of its body
        self.cutter = ThreadPoolExecutor(1)  # the units of a text of tiny sentences take 100 times its memory
        self._workers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="spscanner-work")
        self.working = 0  # requests that wait for a worker, or have one
        self._collections = Kept[CollectionIndex](COLLECTION_BYTES)
        self.documents = Kept[CutDocument](DOCUMENT_BYTES)

    def close(self) -> None:
        """Read what is waiting, and end the threads."""
        self.queue.close()
        for threads in (self._workers, self.cutter, self.one_at_a_time):
            threads.shutdown(cancel_futures=True)

    def pairs(self, query: str, texts: Sequence[str]) -> list[ScanRequest]:
        """One question on several texts. ``RefusedError``: 413 beyond the limits, 422 for an unusable question."""
        self.check_size([len(text) for text in texts], len(query))
        return [self.checked(query, text) for text in texts]

    def checked(
        self, query: str, text: str, units: Sequence[Unit] | None = None, collection: str | None = None
    ) -> ScanRequest:
        """A request for the pipeline; errors as `pairs`, and 404 for a collection that is not known."""
        try:
            request = self.scanner.pipeline.request(query, text, units)
        except ValueError as error:
            raise RefusedError(422, str(error)) from None
        if collection is None:
            return request
        known = self._collections.get(collection)
        if known is None:
            raise RefusedError(
                404, f"collection {collection} is not known; PUT it to /v1/collections/{collection}"
            )
        return request._replace(collection=known)

    def check_size(self, sizes: Sequence[int], question: int = 0) -> None:
        """Raise ``RefusedError`` with 413 for too many texts, given their characters, or too long ones."""
        most, characters = self.limits, sum(sizes) + question * len(sizes)
        if len(sizes) > most.documents:
            raise RefusedError(
                413, f"got {len(sizes)} texts; expected at most {most.documents}: split the request"
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
        asked: bool = True,
    ) -> list[ScanResult]:
        """Have texts read for an HTTP request whose body was received; without being ``asked``, only encoded.

        Raises ``RefusedError`` (429, 503, 504), ``ScanCancelled`` if the client went away.
        """
        if not requests:
            return []
        client = asking.client.host if asking.client else ""
        job = Job(requests, client, asking.state.deadline, together, progress, asked)
        self.queue.submit(job)
        scored, count = await self._awaited(job.future, asking, job.cancel), self.scanner.count_tokens
        return await asyncio.to_thread(lambda: [one.result(count) for one in scored])

    async def work(
        self,
        asking: Request,
        function: Callable[[Callable[[], None]], T],
        workers: ThreadPoolExecutor | None = None,
    ) -> T:
        """Run what needs no model in a thread, within the same limits and with the same errors as `read`.

        ``function`` calls its argument between pieces of its work, which raises when nobody waits any more.
        """
        if self.working >= self.limits.waiting_requests:
            raise RefusedError(429, "too many requests are waiting; ask again in 1 s", retry_after=1)
        given_up = Event()
        self.working += 1
        future = (workers or self._workers).submit(
            function, partial(stop_if, given_up.is_set, "between two pieces")
        )
        try:
            return await self._awaited(future, asking, given_up.set)
        finally:
            self.working -= 1

    async def _awaited(self, future: Future[T], asking: Request, cancel: Callable[[], None]) -> T:
        """The outcome, unless the client goes away, or the time is over that began when its body had arrived."""
        work = asyncio.wrap_future(future)
        leaving = asyncio.ensure_future(_gone(asking))
        either: set[asyncio.Future[Any]] = {work, leaving}
        left = max(0.0, asking.state.deadline - time.monotonic())
        try:
            await asyncio.wait(either, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
            raise ScanCancelled("it is late, or the client went away")
        except ScanCancelled:
            if leaving.done():
                raise
            message = f"no answer within {self.limits.seconds:g} s; send fewer or shorter texts"
            raise RefusedError(504, message, retry_after=5) from None
        finally:
            cancel()
            leaving.cancel()
            work.cancel()

    async def read_in_lines(
        self, requests: Sequence[ScanRequest], asking: Request, describe: Describe
    ) -> StreamingResponse:
        """Answer in lines of JSON: progress now and then, as the client takes it, then what ``describe`` makes."""
        lines = self._lines(requests, asking, describe)
        first = await anext(lines)  # a request that is refused by now gets its status

        async def all_lines() -> AsyncIterator[bytes]:
            yield first
            async for line in lines:
                yield line

        return StreamingResponse(all_lines(), media_type="application/x-ndjson")

    async def _lines(
        self, requests: Sequence[ScanRequest], asking: Request, describe: Describe
    ) -> AsyncIterator[bytes]:
        newest = told = (0, 0)

        def progress(done: int, total: int) -> None:  # called in the reading thread
            nonlocal newest
            newest = (done, total)

        reading = asyncio.ensure_future(self.read(requests, asking, progress=progress))
        try:
            while not reading.done():
                await asyncio.wait({reading}, timeout=TOLD_EACH)
                if newest != told and not reading.done():
                    told = newest
                    yield _line({"progress": {"tokens": told[0], "of": told[1]}})
            yield _line(await describe(reading.result()))
        except (RefusedError, ScanCancelled) as error:
            if told == (0, 0):
                raise
            if isinstance(error, RefusedError):
                yield _line({"error": {"status": error.status_code, "message": error.detail}})
        finally:
            reading.cancel()

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
        except Exception as error:  # damage of an archive of arrays shows in any kind of error
            raise RefusedError(422, f"the collection cannot be read: {error!s:.200}") from None
        size = sum(array.nbytes for array in index.postings) + _WORD_BYTES * len(index.vocabulary)
        if size > COLLECTION_BYTES:
            raise RefusedError(
                413,
                f"the collection takes {size} bytes of memory; expected at most {COLLECTION_BYTES}: split it",
            )
        self._collections.put(digest, index, size)

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


async def _gone(asking: Request) -> None:
    """Return when the client has gone away."""
    while (await asking.receive())["type"] != "http.disconnect":
        pass


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode() + b"\n"  # in ASCII: some clients also end a line at U+2028
