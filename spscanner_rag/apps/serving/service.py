"""What all routes use: sizes are checked, texts are read, and late work is ended."""

import asyncio
import threading
import time
from array import array
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from io import BytesIO
from typing import Any, TypeVar
from zipfile import ZipFile

import numpy as np
from fastapi import Request

from spscanner_rag.apps.serving.limits import Limits, RefusedError
from spscanner_rag.apps.serving.metrics import Metrics
from spscanner_rag.apps.serving.reading_queue import Job, ReadingQueue
from spscanner_rag.files.documents import TextFile
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.results import ScanResult
from spscanner_rag.scan.meter import Meter
from spscanner_rag.scan.pipeline import Pipeline, ScannedText
from spscanner_rag.scan.prepared_document import PreparedDocument
from spscanner_rag.scan.requests import ScanRequest
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Progress, Read, ScanCancelled, stop_if
from spscanner_rag.system.kept_values import KeptValues
from spscanner_rag.text.units import Unit

T = TypeVar("T")

COLLECTION_BYTES = 256 * 2**20
"""Most memory of one uploaded collection."""

PageDocument = tuple[TextFile, Sequence[Unit]]
"""A document of the page with its units."""

_WORD_BYTES = 400  # memory of a word in a collection, with the tables of its stem
_WORKERS = 2  # threads that count and convert texts; further requests wait


class Service:
    """A scanner for many clients, within limits."""

    def __init__(self, scanner: Scanner, limits: Limits) -> None:
        self.scanner = scanner
        self.limits = limits
        # now, because its files may be replaced later
        self._fingerprint = scanner.checkpoint.fingerprint()
        self.metrics = Metrics()
        self.queue = ReadingQueue(scanner.pipeline, limits)
        self.metrics.watch(self.queue)
        # for work that needs many times the memory of its body
        self.one_at_a_time = ThreadPoolExecutor(1)
        # the units of a text of tiny sentences take 100 times its memory
        self.cutter = ThreadPoolExecutor(1)
        self._workers = ThreadPoolExecutor(
            _WORKERS, thread_name_prefix="spscanner-work"
        )
        self.working = 0  # requests that have a worker or wait for one
        self._collections = KeptValues[CollectionIndex]()
        self._prepared = KeptValues[PreparedDocument]()
        self.documents = KeptValues[PageDocument]()

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
    ) -> ScanRequest:
        """A request for the queue, with what is prepared of the text.

        Errors as `pairs`.
        """
        prepared = self._prepared.get(_key_of(text, units))
        try:
            return self.scanner.request(query, prepared or text, units)
        except ValueError as error:
            raise RefusedError(422, str(error)) from None

    def read_option(self, option: Read | None) -> Read:
        """What is read of texts: as a request asks, or else as the server was told.

        ``RefusedError`` 422 for a share, if the scanner cannot choose what is read.
        """
        if option is None:
            return self.scanner.read
        try:
            return self.scanner.with_read(option).read
        except ValueError as error:
            raise RefusedError(422, str(error)) from None

    def collection(self, digest: str | None) -> CollectionIndex | None:
        """The uploaded collection with a digest.

        ``RefusedError`` 404 for an unknown one.
        """
        if digest is None:
            return None
        index = self._collections.get(digest)
        if index is None:
            raise RefusedError(
                404,
                f"collection {digest} is not known; PUT it to /v1/collections/{digest}",
            )
        return index

    def check_size(self, sizes: Sequence[int], question: int = 0) -> None:
        """Raise ``RefusedError`` 413 for too many texts, or too many characters.

        ``sizes`` has those of each.
        """
        limits = self.limits
        characters = sum(sizes) + question * len(sizes)
        if len(sizes) > limits.documents:
            raise RefusedError(
                413,
                f"got {len(sizes)} texts; expected at most {limits.documents}:"
                " split the request",
            )
        if characters > limits.request_characters:
            raise RefusedError(
                413,
                f"got {characters} characters, counting the question for each text;"
                f" expected at most {limits.request_characters}: split the request",
            )

    async def read(
        self,
        requests: Sequence[ScanRequest],
        asking: Request,
        *,
        together: bool = True,
        collection: CollectionIndex | None = None,
        read: Read | None = None,
        progress: Progress | None = None,
    ) -> list[ScanResult]:
        """Read texts for an HTTP request whose body was received.

        ``read`` is what the request asks for, as for `read_option`, with its error.
        Raises ``RefusedError`` (429, 503, 504), or ``ScanCancelled`` if the client went
        away.
        """
        read = self.read_option(read)  # refused even if there is nothing to read
        if not requests:
            return []
        job = Job(
            requests,
            _address_of(asking),
            asking.state.deadline,
            together,
            collection,
            read,
            progress,
        )
        self.queue.submit(job)
        scanned_texts = await self._awaited(job.future, asking, job.cancel)
        count_tokens = self.scanner.count_tokens

        def results() -> list[ScanResult]:
            for request, scanned in zip(requests, scanned_texts, strict=True):
                self._keep(request, scanned)
            scale = self.scanner.keep_scale
            return [scanned.result(count_tokens, scale) for scanned in scanned_texts]

        scan_results = await asyncio.to_thread(results)
        for result in scan_results:
            self.metrics.add_tokens(result.tokens_read or 0)
        return scan_results

    def _keep(self, request: ScanRequest, scanned: ScannedText) -> None:
        """Keep what was prepared of a text, for later questions on it."""
        if request.prepared is not None:
            return
        meaning = self.scanner.meaning
        vectors = None
        if meaning is not None:
            sentences = scanned.indexed.sentences
            if not meaning.has_vectors(sentences):
                return
            vectors = meaning.vectors(sentences)
        prepared = PreparedDocument(
            request.text, (), scanned.indexed, vectors, None, self.scanner.reading
        )
        key = _key_of(request.text, request.units)
        self._prepared.put(key, prepared, prepared.nbytes)

    async def prepare(self, text: str, units: Sequence[Unit], asking: Request) -> None:
        """Prepare a text for later questions, with the errors of `read`."""
        key = _key_of(text, units)
        if self._prepared.get(key) is not None:
            return

        def prepare_text(meter: Meter, pipeline: Pipeline) -> PreparedDocument:
            return pipeline.reading.prepare(text, units, meter)

        job = Job(
            [ScanRequest("", text, units)],
            _address_of(asking),
            asking.state.deadline,
            work=prepare_text,
        )
        self.queue.submit(job)
        prepared: PreparedDocument = await self._awaited(job.future, asking, job.cancel)
        self._prepared.put(key, prepared, prepared.nbytes)

    async def work(
        self,
        asking: Request,
        function: Callable[[Callable[[], None]], T],
        workers: ThreadPoolExecutor | None = None,
    ) -> T:
        """Run work without the model in a thread, with the limits and errors of `read`.

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
        """Return the result, unless the client leaves or its time is over.

        Its time began when its body arrived.
        """
        work = asyncio.wrap_future(future)
        leaving = asyncio.ensure_future(_gone(asking))
        either: set[asyncio.Future[Any]] = {work, leaving}
        seconds_left = max(0.0, asking.state.deadline - time.monotonic())
        try:
            await asyncio.wait(
                either, timeout=seconds_left, return_when=asyncio.FIRST_COMPLETED
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

    def keep_collection(self, digest: str, content: bytes) -> None:
        """Keep a collection's ``.npz`` of words.

        ``RefusedError``: 422 if it is damaged or has another digest, 413 if it is too
        large.
        """
        if sha256(content).hexdigest() != digest:
            raise RefusedError(
                422,
                "the collection's SHA-256 is not the one in its address; send it again",
            )
        try:
            with ZipFile(BytesIO(content)) as archive:
                # `numpy.savez` does not compress
                if sum(entry.file_size for entry in archive.infolist()) > len(content):
                    raise ValueError("it is compressed")
            with np.load(BytesIO(content), allow_pickle=False) as arrays:
                index = CollectionIndex.from_arrays(dict(arrays))
        except Exception as error:  # a damaged archive of arrays can raise any error
            raise RefusedError(
                422, f"the collection cannot be read: {error!s:.200}"
            ) from None
        size = _WORD_BYTES * len(index.vocabulary)
        size += sum(array.nbytes for array in index.postings)
        if size > COLLECTION_BYTES:
            raise RefusedError(
                413,
                f"the collection takes {size} bytes of memory; expected at most"
                f" {COLLECTION_BYTES}: split it",
            )
        self._collections.put(digest, index, size)

    def describe(self) -> dict[str, Any]:
        """Describe the model for ``/v1/models``."""
        scanner = self.scanner
        settings = scanner.checkpoint.settings
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


def _key_of(text: str, units: Sequence[Unit] | None) -> str:
    """A digest of a text, and of its units if they are not the segmenter's."""
    digest = sha256(text.encode("utf-8", "surrogatepass"))
    if units is None:
        return digest.hexdigest()
    numbers = array("q")
    for start, end, model_text in units:
        numbers.extend((start, end, len(model_text)))
    digest.update(numbers.tobytes())
    model_texts = "".join(unit.model_text for unit in units)
    digest.update(model_texts.encode("utf-8", "surrogatepass"))
    return f"{digest.hexdigest()} {len(units)}"


def _address_of(asking: Request) -> str:
    return asking.client.host if asking.client else ""


async def _gone(asking: Request) -> None:
    """Wait until the client has gone away."""
    while (await asking.receive())["type"] != "http.disconnect":
        pass
