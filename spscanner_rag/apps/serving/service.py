"""The service behind all routes: checks sizes, queues and reads texts, and ends jobs whose client has gone.

Short jobs share forward passes, and run between the passes of a long job.
"""

import asyncio
import json
import logging
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from io import BytesIO
from typing import Any, Generic, TypeVar
from zipfile import ZipFile

import numpy as np
from fastapi import Request
from fastapi.responses import StreamingResponse

from spscanner_rag.apps.serving.access import Limits, RefusedError
from spscanner_rag.files.documents import TextFile
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.results import ScanResult
from spscanner_rag.scan.pipeline import Meter, Pipeline, ScanRequest, Scored
from spscanner_rag.scan.prepare import Reading
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Progress, ScanCancelled, stop_if
from spscanner_rag.text.units import Unit

T = TypeVar("T")

COLLECTION_BYTES = 256 * 2**20
"""Most memory for uploaded collections."""

DOCUMENT_BYTES = 128 * 2**20
"""Most memory for the page's documents, which are kept, read and cut, for further
questions."""

TOLD_EACH = 0.05  # seconds between reports of progress

CutDocument = tuple[TextFile, Sequence[Unit]]
Describe = Callable[[list[ScanResult]], Awaitable[dict[str, Any]]]

_WORD_BYTES = 400  # memory of a word in a collection, with the tables of its stem
_WORKERS = 2  # threads that count and convert texts; further requests wait

_log = logging.getLogger(__name__)

CHARACTERS_PER_TOKEN = 4  # in English text; only batch sizes depend on it
PASSES_TOGETHER = 4
"""Short jobs are read together, up to this many forward passes; a job that needs
more is long and read alone."""

LONG_PASSES = 2
"""On a CPU, the passes of a long job are this many times shorter: a short job waits
for the end of the current pass, and smaller products cost little there."""

SMALLER = 4
"""A job this many times smaller than a long one need not wait for its end."""

WAIT_SECONDS = 0.003  # how long the first job waits for others to share its pass
_CHARACTERS_PER_SECOND = (
    40_000  # on a small machine; decides when a refused client should try again
)


def characters_of(text: str, units: Sequence[Unit] | None) -> int:
    """Characters that the model reads for a text.

    The caller's units may have more than the text.
    """
    return max(len(text), sum(len(unit.model_text) for unit in units or ()))


@dataclass(eq=False, slots=True)
class Job:
    """The texts of one HTTP request, answered together."""

    requests: Sequence[ScanRequest]  # at least one
    client: str  # for fairness
    deadline: float  # by `time.monotonic`
    together: bool = True  # the texts are one collection
    progress: Progress | None = (
        None  # called in the reading thread, if the job is read alone
    )
    asked: bool = True  # if False, the texts are only encoded for a later question
    future: Future[list[Scored]] = field(default_factory=Future)
    characters: int = field(init=False)
    _cancelled: bool = False

    def __post_init__(self) -> None:
        # The question is matched with every text, so even an empty text costs
        # something.
        self.characters = sum(
            len(each.query) + characters_of(each.text, each.units)
            for each in self.requests
        )

    def cancel(self) -> None:
        """Cancel the job, because its client is gone."""
        self._cancelled = True

    @property
    def unwanted(self) -> bool:
        """True if nobody is waiting for the answer any more."""
        return self._cancelled or time.monotonic() > self.deadline


class ReadingQueue:
    """Reads jobs with one model in its own thread. Clients take turns.

    Jobs that fit into `PASSES_TOGETHER` forward passes are read together, longer ones
    alone. After a pass of a long job, smaller jobs are read; if there are always some,
    they get half of the time.
    """

    def __init__(self, pipeline: Pipeline, limits: Limits) -> None:
        self.pipeline, self.limits = pipeline, limits
        self.full_characters = (
            pipeline.segment_tokens * PASSES_TOGETHER * CHARACTERS_PER_TOKEN
        )
        shorter = pipeline.segment_tokens // (
            LONG_PASSES if pipeline.model.device.type == "cpu" else 1
        )
        self._of_long = replace(pipeline, segment_tokens=max(1, shorter))
        self._jobs: dict[
            str, list[Job]
        ] = {}  # waiting jobs by client, in the order of the clients' turns
        self.characters = 0  # in all jobs that wait or are being read
        self._changed = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(
            target=self._serve, name="spscanner-reading", daemon=True
        )
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Number of jobs that are not yet being read."""
        with self._changed:
            return sum(map(len, self._jobs.values()))

    @property
    def alive(self) -> bool:
        """True if the thread is running; without it, waiting jobs are never read."""
        return self._thread.is_alive()

    def submit(self, job: Job) -> None:
        """Queue a job, whose future gets a `Scored` per text.

        ``RefusedError``: 429 if full, 503 if closing.
        """
        with self._changed:
            if self._closing:
                raise RefusedError(
                    503, "the server is stopping; ask another one", retry_after=5
                )
            limits, size = self.limits, self.characters
            full = sum(map(len, self._jobs.values())) >= limits.waiting_requests
            if full or (size and size + job.characters > limits.waiting_characters):
                wait = max(1, min(60, size // _CHARACTERS_PER_SECOND))
                raise RefusedError(
                    429, f"too many requests are waiting; ask again in {wait} s", wait
                )
            self._jobs.setdefault(job.client, []).append(job)
            self.characters += job.characters
            self._changed.notify_all()

    def close(self) -> None:
        """Accept nothing more, read the waiting jobs, and end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._jobs or self._closing)
                if not self._jobs:
                    return
                self._changed.wait_for(
                    lambda: self.characters >= self.full_characters, WAIT_SECONDS
                )
            self.read_next()

    def read_next(self, largest: int = sys.maxsize) -> None:
        """Read the next job of at most this many characters, if any.

        Short jobs are read together.
        """
        with self._changed:
            jobs = self._take(largest)
        self._read([job for job in jobs if self._wanted(job)])
        with self._changed:
            self.characters -= sum(job.characters for job in jobs)

    def _take(self, largest: int) -> list[Job]:
        taken: list[Job] = []
        size = 0
        while size < self.full_characters:
            fitting = (
                job
                for own in self._jobs.values()
                for job in own
                if job.characters <= largest
            )
            job = next(fitting, None)
            if job is None:
                break
            own = self._jobs.pop(job.client)
            own.remove(job)
            if own:
                self._jobs[job.client] = own  # after the other clients
            taken.append(job)
            size += job.characters
            largest = min(largest, self.full_characters)
        return taken

    def _wanted(self, job: Job) -> bool:
        """True if somebody waits for the answer.

        Its future can no longer be cancelled, and gets an outcome.
        """
        if not job.future.set_running_or_notify_cancel():
            return False
        if job.unwanted:
            job.future.set_exception(ScanCancelled("cancelled before it was read"))
        return not job.future.done()

    def _read(self, jobs: list[Job]) -> None:
        """Read jobs together; if that fails, read each alone, so that only the faulty one fails."""
        try:
            if jobs:
                self._read_together(jobs)
        except Exception as error:  # no error that a text causes may end the thread
            if len(jobs) == 1 and not jobs[0].future.done():
                if not isinstance(error, ScanCancelled):
                    _log.exception("a request could not be read")
                jobs[0].future.set_exception(error)
        # Outside the handler, because the error keeps the memory of the failed pass.
        for job in jobs:
            if not job.future.done():
                self._read([job])

    def _read_together(self, jobs: list[Job]) -> None:
        size = sum(job.characters for job in jobs)
        long = len(jobs) == 1 and size > self.full_characters
        meter = _SharedMeter(
            progress=jobs[0].progress if len(jobs) == 1 else None,
            cancelled=lambda: all(job.unwanted for job in jobs),
            others=self.read_next,
            largest=size // SMALLER if long else 0,
        )
        for job in jobs:
            if not job.asked:
                for request in job.requests:
                    _encode(self.pipeline.reading, request, meter)
                job.future.set_result([])
        jobs = [job for job in jobs if job.asked]
        requests: list[ScanRequest] = []
        for job in jobs:
            several = job.together and len(job.requests) > 1
            requests += (
                self.pipeline.counted_together(job.requests, meter)
                if several
                else job.requests
            )
        with closing(
            (self._of_long if long else self.pipeline).run(requests, meter)
        ) as scored:
            for job in jobs:
                job.future.set_result([next(scored) for _ in job.requests])


@dataclass(kw_only=True)
class _SharedMeter(Meter):
    """Lets other jobs of at most ``largest`` characters be read between forward passes and pieces of a text."""

    others: Callable[[int], None]
    largest: int
    resumed: float = 0.0  # when the last of these jobs ended
    lasted: float = (
        0.0  # how long they took; the interrupted job then runs at least as long
    )

    def check(self) -> None:
        super().check()
        if not self.largest:
            return
        began = time.monotonic()
        if began - self.resumed >= self.lasted:
            self.others(self.largest)
            self.resumed = time.monotonic()
            self.lasted = self.resumed - began


def _encode(reading: Reading, request: ScanRequest, meter: Meter) -> None:
    """Compute and keep the vectors of a text for a later question, if there is an encoder."""
    if reading.meaning is not None:
        units = reading.folded_units(request.text, request.units, meter.check)
        sentences = [unit.model_text for unit in units]
        reading.meaning.vectors(sentences, meter.expect, meter.after_step)


class Kept(Generic[T]):
    """Values by digest, of at most so many bytes; the least recently used are dropped.

    Thread-safe.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._lock = threading.Lock()
        self._values: dict[str, tuple[T, int]] = {}  # in order of last use

    def put(self, digest: str, value: T, size: int) -> None:
        """Keep a value of ``size`` bytes, unless it is larger than the limit for all."""
        if size > self.most_bytes:
            return
        with self._lock:
            self._values.pop(digest, None)
            self._values[digest] = value, size
            while sum(own for _, own in self._values.values()) > self.most_bytes:
                del self._values[next(iter(self._values))]

    def get(self, digest: str) -> T | None:
        """Return the value, or None if it is not kept."""
        with self._lock:
            if digest not in self._values:
                return None
            self._values[digest] = found = self._values.pop(digest)
            return found[0]


class Service:
    """A scanner for many clients, within limits."""

    def __init__(self, scanner: Scanner, limits: Limits) -> None:
        self.scanner, self.limits = scanner, limits
        self._fingerprint = (
            scanner.checkpoint.fingerprint()
        )  # now, because its files may be replaced later
        self.queue = ReadingQueue(scanner.pipeline, limits)
        self.one_at_a_time = ThreadPoolExecutor(
            1
        )  # for work that needs many times the memory of its body
        self.cutter = ThreadPoolExecutor(
            1
        )  # the units of a text of tiny sentences take 100 times its memory
        self._workers = ThreadPoolExecutor(
            _WORKERS, thread_name_prefix="spscanner-work"
        )
        self.working = 0  # requests that have a worker or wait for one
        self._collections = Kept[CollectionIndex](COLLECTION_BYTES)
        self.documents = Kept[CutDocument](DOCUMENT_BYTES)

    def close(self) -> None:
        """Read the waiting jobs, and end the threads."""
        self.queue.close()
        for threads in (self._workers, self.cutter, self.one_at_a_time):
            threads.shutdown(cancel_futures=True)

    def pairs(self, query: str, texts: Sequence[str]) -> list[ScanRequest]:
        """Requests for a question on several texts.

        ``RefusedError``: 413 beyond limits, 422 for a bad query.
        """
        self.check_size([len(text) for text in texts], len(query))
        return [self.checked(query, text) for text in texts]

    def checked(
        self,
        query: str,
        text: str,
        units: Sequence[Unit] | None = None,
        collection: str | None = None,
    ) -> ScanRequest:
        """A request for the pipeline.

        Errors as `pairs`, and 404 for an unknown collection.
        """
        try:
            request = self.scanner.pipeline.request(query, text, units)
        except ValueError as error:
            raise RefusedError(422, str(error)) from None
        if collection is None:
            return request
        known = self._collections.get(collection)
        if known is None:
            raise RefusedError(
                404,
                f"collection {collection} is not known; PUT it to"
                f" /v1/collections/{collection}",
            )
        return request._replace(collection=known)

    def check_size(self, sizes: Sequence[int], question: int = 0) -> None:
        """Raise ``RefusedError`` 413 for too many texts, or too many characters.

        ``sizes`` has those of each.
        """
        most, characters = self.limits, sum(sizes) + question * len(sizes)
        if len(sizes) > most.documents:
            raise RefusedError(
                413,
                f"got {len(sizes)} texts; expected at most {most.documents}: split the"
                " request",
            )
        if characters > most.request_characters:
            raise RefusedError(
                413,
                f"got {characters} characters, counting the question for each text;"
                f" expected at most {most.request_characters}: split the request",
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
        """Read texts for an HTTP request whose body was received.

        If not ``asked``, only encode them.

        Raises ``RefusedError`` (429, 503, 504), or ``ScanCancelled`` if the client went
        away.
        """
        if not requests:
            return []
        client = asking.client.host if asking.client else ""
        job = Job(requests, client, asking.state.deadline, together, progress, asked)
        self.queue.submit(job)
        scored, count = (
            await self._awaited(job.future, asking, job.cancel),
            self.scanner.count_tokens,
        )
        return await asyncio.to_thread(lambda: [one.result(count) for one in scored])

    async def work(
        self,
        asking: Request,
        function: Callable[[Callable[[], None]], T],
        workers: ThreadPoolExecutor | None = None,
    ) -> T:
        """Run work that needs no model in a thread, with the same limits and errors as `read`.

        ``function`` calls its argument between pieces of its work; the call raises when
        nobody waits any more.
        """
        if self.working >= self.limits.waiting_requests:
            raise RefusedError(
                429, "too many requests are waiting; ask again in 1 s", retry_after=1
            )
        given_up = threading.Event()
        self.working += 1
        future = (workers or self._workers).submit(
            function, partial(stop_if, given_up.is_set, "between two pieces")
        )
        try:
            return await self._awaited(future, asking, given_up.set)
        finally:
            self.working -= 1

    async def _awaited(
        self, future: Future[T], asking: Request, cancel: Callable[[], None]
    ) -> T:
        """Return the result, unless the client leaves or its time, which began when its body arrived, is over."""
        work = asyncio.wrap_future(future)
        leaving = asyncio.ensure_future(_gone(asking))
        either: set[asyncio.Future[Any]] = {work, leaving}
        left = max(0.0, asking.state.deadline - time.monotonic())
        try:
            await asyncio.wait(
                either, timeout=left, return_when=asyncio.FIRST_COMPLETED
            )
            if work.done():
                return work.result()
            raise ScanCancelled("it is late, or the client went away")
        except ScanCancelled:
            if leaving.done():
                raise
            message = (
                f"no answer within {self.limits.seconds:g} s; send fewer or shorter"
                " texts"
            )
            raise RefusedError(504, message, retry_after=5) from None
        finally:
            cancel()
            leaving.cancel()
            work.cancel()

    async def read_in_lines(
        self, requests: Sequence[ScanRequest], asking: Request, describe: Describe
    ) -> StreamingResponse:
        """Answer in lines of JSON: progress, as fast as the client takes it, then the result of ``describe``."""
        lines = self._lines(requests, asking, describe)
        first = await anext(lines)  # a request refused by then gets its status

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
                yield _line(
                    {"error": {"status": error.status_code, "message": error.detail}}
                )
        finally:
            reading.cancel()

    def keep_collection(self, digest: str, content: bytes) -> None:
        """Keep a collection's ``.npz`` of words.

        ``RefusedError`` 422 if it is damaged or has another digest.
        """
        if sha256(content).hexdigest() != digest:
            raise RefusedError(
                422,
                "the collection's SHA-256 is not the one in its address; send it again",
            )
        try:
            with ZipFile(
                BytesIO(content)
            ) as archive:  # `numpy.savez` does not compress
                if sum(entry.file_size for entry in archive.infolist()) > len(content):
                    raise ValueError("it is compressed")
            with np.load(BytesIO(content), allow_pickle=False) as arrays:
                index = CollectionIndex.from_arrays(dict(arrays))
        except Exception as error:  # a damaged archive of arrays can raise any error
            raise RefusedError(
                422, f"the collection cannot be read: {error!s:.200}"
            ) from None
        size = sum(array.nbytes for array in index.postings) + _WORD_BYTES * len(
            index.vocabulary
        )
        if size > COLLECTION_BYTES:
            raise RefusedError(
                413,
                f"the collection takes {size} bytes of memory; expected at most"
                f" {COLLECTION_BYTES}: split it",
            )
        self._collections.put(digest, index, size)

    def describe(self) -> dict[str, Any]:
        """Describe the model for ``/v1/models``."""
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
    """Wait until the client has gone away."""
    while (await asking.receive())["type"] != "http.disconnect":
        pass


def _line(value: dict[str, Any]) -> bytes:
    return (
        json.dumps(value).encode() + b"\n"
    )  # ASCII, because some clients also end a line at U+2028
