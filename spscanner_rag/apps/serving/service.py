"""What the routes share: limits are checked, jobs are read, a client that goes away cancels its job."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from hashlib import sha256
from io import BytesIO
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np

from spscanner_rag.apps.serving.jobs import Job
from spscanner_rag.apps.serving.limits import Limits, RefusedError
from spscanner_rag.apps.serving.metrics import Metrics
from spscanner_rag.apps.serving.reading_queue import ReadingQueue
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.results import ScanResult
from spscanner_rag.scan.pipeline import ScanRequest, Scored
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Progress, ScanCancelled
from spscanner_rag.text.units import Unit

Gone = Callable[[], Awaitable[None]]
"""Returns when the client has gone away."""

COLLECTIONS = 8
"""How many uploaded collections are kept; the one used longest ago is dropped first."""


class Service:
    """A scanner for many clients.

    Parameters
    ----------
    scanner : Scanner
    limits : Limits
    """

    def __init__(self, scanner: Scanner, limits: Limits) -> None:
        self.scanner, self.limits = scanner, limits
        self._fingerprint = scanner.checkpoint.fingerprint()  # now: its files may be replaced later
        self.metrics = Metrics()
        self.queue = ReadingQueue(scanner.pipeline, limits, self.metrics.tokens.inc)
        self.metrics.watch(self.queue)
        self._collections: OrderedDict[str, CollectionIndex] = OrderedDict()

    def pairs(self, query: str, texts: Sequence[str]) -> list[ScanRequest]:
        """Requests of one question on several texts.

        Raises ``RefusedError`` with 413 beyond the limits, with 422 for an empty question or one that is too long.
        """
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
        return request if collection is None else request._replace(collection=self.collection(collection))

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
        client: str,
        gone: Gone,
        *,
        together: bool = True,
        progress: Progress | None = None,
    ) -> list[Scored]:
        """Have requests read.

        Raises ``RefusedError`` (429, 503, 504), ``ScanCancelled`` if the client went away.
        """
        if not requests:
            return []
        job = Job(requests, client, self.limits.seconds, together, progress)
        self.queue.submit(job)
        reading = asyncio.wrap_future(job.future)
        leaving = asyncio.ensure_future(gone())
        try:
            either: set[asyncio.Future[Any]] = {reading, leaving}
            await asyncio.wait(either, timeout=job.seconds, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                self.metrics.cancelled.inc()
                if leaving.done():
                    raise ScanCancelled("the client went away")
                raise self._too_late()
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

    def results(self, scored: Iterable[Scored]) -> list[ScanResult]:
        """What was read, as results that select passages."""
        return [
            ScanResult(
                one.request.query,
                one.request.text,
                one.cut.starts,
                one.cut.ends,
                one.logits,
                self.scanner.count_tokens,
            )
            for one in scored
        ]

    def keep_collection(self, digest: str, content: bytes) -> None:
        """Keep the words of a collection, as `CollectionIndex.to_arrays` in an ``.npz`` file.

        Raises ``RefusedError`` with 422 if the digest is not that of the content, or the content is damaged.
        """
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

    def collection(self, digest: str) -> CollectionIndex:
        """A collection that was sent; ``RefusedError`` with 404 if it is not, or no longer, known."""
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
