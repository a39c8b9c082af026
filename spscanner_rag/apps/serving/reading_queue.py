"""The queue between requests and the model: short jobs share forward passes and go between those of a long one."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field, replace

from spscanner_rag.apps.serving.access import Limits, RefusedError
from spscanner_rag.scan.pipeline import Meter, Pipeline, ScanRequest, Scored
from spscanner_rag.scan.prepare import Reading
from spscanner_rag.scorers import Progress, ScanCancelled
from spscanner_rag.text.units import Unit

_log = logging.getLogger(__name__)

CHARACTERS_PER_TOKEN = 4  # of English text; only sizes of batches depend on it
PASSES_TOGETHER = 4
"""Short jobs are read together up to this many forward passes; a job of more is long, and read alone."""

LONG_PASSES = 2
"""On a CPU, a long job is read in so many times shorter passes: a short one waits for the end of the pass that
is being computed, and smaller products cost little there."""

SMALLER = 4
"""Jobs that are so many times smaller than a long one need not wait for its end."""

WAIT_SECONDS = 0.003  # time that the first job waits for others to share its pass
_CHARACTERS_PER_SECOND = 40_000  # of a small machine: a client that is refused is told when to come back


def characters_of(text: str, units: Sequence[Unit] | None) -> int:
    """Characters that the model reads of a text: units of the caller's may have more than the text."""
    return max(len(text), sum(len(unit.model_text) for unit in units or ()))


@dataclass(eq=False, slots=True)
class Job:
    """The texts of one HTTP request, which are answered together."""

    requests: Sequence[ScanRequest]  # at least one
    client: str  # for fairness
    deadline: float  # by `time.monotonic`
    together: bool = True  # the texts are one collection
    progress: Progress | None = None  # called in the reading thread, if the job is read alone
    asked: bool = True  # else the texts are only encoded, for a question that follows
    future: Future[list[Scored]] = field(default_factory=Future)
    characters: int = field(init=False)
    _cancelled: bool = False

    def __post_init__(self) -> None:
        # The question is matched with every text, so even an empty text costs something.
        self.characters = sum(
            len(each.query) + characters_of(each.text, each.units) for each in self.requests
        )

    def cancel(self) -> None:
        """Give the job up: its client is gone."""
        self._cancelled = True

    @property
    def unwanted(self) -> bool:
        """True if nobody waits for the answer any more."""
        return self._cancelled or time.monotonic() > self.deadline


class ReadingQueue:
    """Reads jobs with one model, in a thread of its own. Clients take turns.

    Jobs that fit into `PASSES_TOGETHER` forward passes are read together, longer ones alone. After a pass of a
    long one, smaller jobs are read, for half of the time if there are always some.
    """

    def __init__(self, pipeline: Pipeline, limits: Limits) -> None:
        self.pipeline, self.limits = pipeline, limits
        self.full_characters = pipeline.segment_tokens * PASSES_TOGETHER * CHARACTERS_PER_TOKEN
        shorter = pipeline.segment_tokens // (LONG_PASSES if pipeline.model.device.type == "cpu" else 1)
        self._of_long = replace(pipeline, segment_tokens=max(1, shorter))
        self._jobs: dict[str, list[Job]] = {}  # that wait, by client, in the order of the clients' next turns
        self.characters = 0  # of all jobs that wait or are being read
        self._changed = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._serve, name="spscanner-reading", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Number of jobs that nobody reads yet."""
        with self._changed:
            return sum(map(len, self._jobs.values()))

    @property
    def alive(self) -> bool:
        """True if its thread runs: without it, what waits is never read."""
        return self._thread.is_alive()

    def submit(self, job: Job) -> None:
        """Have a job read: its future gets a `Scored` each. ``RefusedError``: 429 if full, 503 if closing."""
        with self._changed:
            if self._closing:
                raise RefusedError(503, "the server is stopping; ask another one", retry_after=5)
            limits, size = self.limits, self.characters
            full = sum(map(len, self._jobs.values())) >= limits.waiting_requests
            if full or (size and size + job.characters > limits.waiting_characters):
                wait = max(1, min(60, size // _CHARACTERS_PER_SECOND))
                raise RefusedError(429, f"too many requests are waiting; ask again in {wait} s", wait)
            self._jobs.setdefault(job.client, []).append(job)
            self.characters += job.characters
            self._changed.notify_all()

    def close(self) -> None:
        """Read what is waiting, accept nothing more, and end the thread."""
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
                self._changed.wait_for(lambda: self.characters >= self.full_characters, WAIT_SECONDS)
            self.read_next(self.limits.waiting_characters)

    def read_next(self, largest: int) -> None:
        """Read the next job of at most so many characters, with a short one others that are, if there is one."""
        with self._changed:
            jobs = self._take(largest)
        self._read([job for job in jobs if self._wanted(job)])
        with self._changed:
            self.characters -= sum(job.characters for job in jobs)

    def _take(self, largest: int) -> list[Job]:
        taken: list[Job] = []
        size = 0
        while size < self.full_characters:
            fitting = (job for own in self._jobs.values() for job in own if job.characters <= largest)
            job = next(fitting, None)
            if job is None:
                break
            own = self._jobs.pop(job.client)
            own.remove(job)
            if own:
                self._jobs[job.client] = own  # behind the other clients
            taken.append(job)
            size += job.characters
            largest = min(largest, self.full_characters)
        return taken

    def _wanted(self, job: Job) -> bool:
        """True if somebody waits for the answer; from now on the future is not cancelled, but gets an outcome."""
        if not job.future.set_running_or_notify_cancel():
            return False
        if job.unwanted:
            job.future.set_exception(ScanCancelled("cancelled before it was read"))
        return not job.future.done()

    def _read(self, jobs: list[Job]) -> None:
        """Read jobs together; if that fails, each alone, so that only the one at fault fails."""
        try:
            if jobs:
                self._read_together(jobs)
        except Exception as error:  # whatever a text made the model do must not end the thread
            left = [job for job in jobs if not job.future.done()]
            if len(jobs) > 1:
                for job in left:
                    self._read([job])
            elif left:
                if not isinstance(error, ScanCancelled):
                    _log.exception("a request could not be read")
                left[0].future.set_exception(error)

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
            requests += self.pipeline.counted_together(job.requests, meter) if several else job.requests
        with closing((self._of_long if long else self.pipeline).run(requests, meter)) as scored:
            for job in jobs:
                job.future.set_result([next(scored) for _ in job.requests])


@dataclass(kw_only=True)
class _SharedMeter(Meter):
    """Has other jobs read, of at most ``largest`` characters, between forward passes and pieces of a text."""

    others: Callable[[int], None]
    largest: int
    resumed: float = 0.0  # when the last of them ended
    lasted: float = 0.0  # how long they took: at least as long goes on what they interrupted

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
    """Have the vectors of a text kept, where there is an encoder, for a question that is asked later."""
    if reading.meaning is not None:
        units = reading.folded_units(request.text, request.units, meter.check)
        sentences = [unit.model_text for unit in units]
        reading.meaning.vectors(sentences, meter.expect, meter.after_step)
