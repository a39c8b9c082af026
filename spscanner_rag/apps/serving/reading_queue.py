"""The queue of texts that one model reads, in a thread of its own.

The server and the tools for agents have one each. Short jobs share forward passes, and
run between the passes of a long job.
"""

import logging
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, TypeAlias

from spscanner_rag.apps.serving.limits import Limits, RefusedError
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.scan.meter import Meter
from spscanner_rag.scan.pipeline import Pipeline
from spscanner_rag.scan.requests import ScanRequest
from spscanner_rag.scorers import Progress, Read, ScanCancelled
from spscanner_rag.text.units import Unit

CHARACTERS_PER_TOKEN = 4  # in English text; only batch sizes depend on it

PASSES_TOGETHER = 4
"""Short jobs are read together, up to this many forward passes; a job that needs
more is long and read alone."""

LONG_PASSES = 4
"""On a CPU, the passes of a long job are this many times shorter: a short job waits
for the end of the current pass, and smaller products cost little there."""

SMALLER = 4
"""A job this many times smaller than one that is read alone need not wait for it."""

WAIT_SECONDS = 0.003  # how long the first job waits for others to share its pass

# on a small machine; decides when a refused client should try again
_CHARACTERS_PER_SECOND = 40_000

Work: TypeAlias = Callable[[Meter, Pipeline], Any]
"""What a job does with the model in place of a scan.

It calls the meter's ``check`` between steps, so that smaller jobs are read there.
"""

_log = logging.getLogger(__name__)


def characters_of(text: str, units: Sequence[Unit] | None) -> int:
    """Characters that the model reads for a text.

    The caller's units may have more than the text.
    """
    in_units = sum(len(unit.model_text) for unit in units or ())
    return max(len(text), in_units)


@dataclass(eq=False, slots=True)
class Job:
    """The texts of one request, answered together.

    Parameters
    ----------
    requests : sequence of ScanRequest
        At least one.
    client : str
        The address of the client; clients take turns.
    deadline : float
        By `time.monotonic`.
    together : bool
        Whether the texts are one collection.
    collection : CollectionIndex, optional
        The words of a larger collection that they belong to.
    read : "auto", "all" or float
        What is read of them, as for `Scanner.scan`.
    progress : callable, optional
        Called in the reading thread, if the job is read alone.
    work : callable, optional
        Done with the model instead of the scan of the texts, which then tell its size.
    future : Future
        Gets a list with a `ScannedText` for each request, or what ``work`` returns.
    """

    requests: Sequence[ScanRequest]
    client: str
    deadline: float
    together: bool = True
    collection: CollectionIndex | None = None
    read: Read = "auto"
    progress: Progress | None = None
    work: Work | None = None
    future: Future[Any] = field(default_factory=Future)
    characters: int = field(init=False)
    _cancelled: bool = False

    def __post_init__(self) -> None:
        # The question is matched with every text, so even an empty text costs
        # something.
        self.characters = 0
        for request in self.requests:
            size = len(request.query) + characters_of(request.text, request.units)
            self.characters += size

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
    alone. After a pass of a job that is read alone, smaller jobs are read; if there are
    always some, they get half of the time.
    """

    def __init__(self, pipeline: Pipeline, limits: Limits) -> None:
        self.pipeline = pipeline
        self.limits = limits
        self.full_characters = (
            pipeline.segment_tokens * PASSES_TOGETHER * CHARACTERS_PER_TOKEN
        )
        shorter = pipeline.segment_tokens
        if pipeline.token_reader.device.type == "cpu":
            shorter //= LONG_PASSES
        self._pipeline_of_long = replace(pipeline, segment_tokens=max(1, shorter))
        # waiting jobs by client, in the order of the clients' turns
        self._jobs: dict[str, list[Job]] = {}
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
        """True if the thread is running.

        Without it, waiting jobs are never read.
        """
        return self._thread.is_alive()

    def submit(self, job: Job) -> None:
        """Queue a job, whose future gets its outcome.

        ``RefusedError``: 429 if full, 503 if closing.
        """
        with self._changed:
            if self._closing:
                raise RefusedError(
                    503, "the server is stopping; ask another one", retry_after=5
                )
            limits = self.limits
            size = self.characters
            is_full = sum(map(len, self._jobs.values())) >= limits.waiting_requests
            if size and size + job.characters > limits.waiting_characters:
                is_full = True
            if is_full:
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
        """Take jobs out of the queue until they fill the passes of one reading."""
        jobs: list[Job] = []
        size = 0
        while size < self.full_characters:
            job = self._first_job(largest)
            if job is None:
                break
            jobs_of_client = self._jobs.pop(job.client)
            jobs_of_client.remove(job)
            if jobs_of_client:
                self._jobs[job.client] = jobs_of_client  # after the other clients
            jobs.append(job)
            size += job.characters
            largest = min(largest, self.full_characters)
        return jobs

    def _first_job(self, largest: int) -> Job | None:
        for jobs_of_client in self._jobs.values():
            for job in jobs_of_client:
                if job.characters <= largest:
                    return job
        return None

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
        """Read jobs together, or one by one if that fails.

        So only the faulty one fails.
        """
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
        is_long = len(jobs) == 1 and size > self.full_characters
        meter = _SharedMeter(
            progress=jobs[0].progress if len(jobs) == 1 else None,
            cancelled=lambda: all(job.unwanted for job in jobs),
            others=self.read_next,
            largest=size // SMALLER if len(jobs) == 1 else 0,
        )
        pipeline = self._pipeline_of_long if is_long else self.pipeline
        asking_jobs: list[Job] = []
        for job in jobs:
            if job.work is None:
                asking_jobs.append(job)
            else:
                job.future.set_result(job.work(meter, pipeline))
        planned = chain.from_iterable(
            pipeline.planned(
                job.requests,
                meter,
                job.collection,
                together=job.together and len(job.requests) > 1,
                read=job.read,
            )
            for job in asking_jobs
        )
        with closing(pipeline.read_planned(planned, meter)) as scanned:
            for job in asking_jobs:
                job.future.set_result([next(scanned) for _ in job.requests])


@dataclass(kw_only=True)
class _SharedMeter(Meter):
    """Lets smaller jobs be read between the forward passes of a long one.

    Parameters
    ----------
    others : callable
        Reads the next job of at most so many characters.
    largest : int
        The most characters of such a job; 0 if there is none.
    resumed : float
        When the last of these jobs ended.
    lasted : float
        How long they took; the interrupted job then runs at least as long.
    """

    others: Callable[[int], None]
    largest: int
    resumed: float = 0.0
    lasted: float = 0.0

    def check(self) -> None:
        super().check()
        if not self.largest:
            return
        began = time.monotonic()
        if began - self.resumed >= self.lasted:
            self.others(self.largest)
            self.resumed = time.monotonic()
            self.lasted = self.resumed - began
