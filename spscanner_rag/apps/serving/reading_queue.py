"""The queue between requests and the model: short jobs share forward passes, long ones are read in between."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace

from spscanner_rag.apps.serving.fair_queue import FairQueue
from spscanner_rag.apps.serving.jobs import Job
from spscanner_rag.apps.serving.limits import Limits, RefusedError
from spscanner_rag.apps.serving.turns import Kind, Turns
from spscanner_rag.scan.pipeline import Meter, Pipeline, ScanRequest, Scored
from spscanner_rag.scorers import ScanCancelled

_log = logging.getLogger(__name__)

CHARACTERS_PER_TOKEN = 4
"""Of English text; only sizes of batches depend on it."""

PASSES_TOGETHER = 4
"""Short jobs are read together up to this many forward passes; a job of more is long, and read alone."""

LONG_PASSES = 2
"""On a CPU, a long job is read in so many times shorter passes: a short one waits for the end of the pass that
is being computed, and smaller products cost little there."""

LONG_LANES = 3
"""Long jobs that are read at the same time, a forward pass of each in turn."""

WAIT_SECONDS = 0.003
"""How long the first short job waits for others to share its pass."""

_FIRST_RATE = 40_000.0  # characters a second, until something has been measured
_RATE_SHARE = 0.2  # of the newest measurement in the running mean


class ReadingQueue:
    """Reads jobs with one model, in threads of its own.

    Jobs that fit into `PASSES_TOGETHER` forward passes are read together, as many as there are. Longer ones are
    read one at a time in `LONG_LANES` threads, and after each of their passes a waiting batch of short ones goes
    first. Within both kinds, clients take turns.

    Parameters
    ----------
    pipeline : Pipeline
        Of a scanner.
    limits : Limits
        ``waiting_requests`` and ``waiting_characters`` bound what `submit` accepts.
    read : callable, optional
        Called with the number of tokens after each forward pass, for metrics.
    """

    def __init__(
        self, pipeline: Pipeline, limits: Limits, read: Callable[[int], None] = lambda tokens: None
    ) -> None:
        self.pipeline, self.limits, self._count = pipeline, limits, read
        self.full_characters = pipeline.segment_tokens * PASSES_TOGETHER * CHARACTERS_PER_TOKEN
        shorter = pipeline.segment_tokens // (LONG_PASSES if pipeline.model.device.type == "cpu" else 1)
        self._pipelines: dict[Kind, Pipeline] = {
            "short": pipeline,
            "long": replace(pipeline, segment_tokens=max(1, shorter)),
        }
        self._waiting: dict[Kind, FairQueue[Job]] = {"short": FairQueue(), "long": FairQueue()}
        self._changed = threading.Condition()
        self._turns = Turns()
        self._reading_characters = 0
        self._rate = _FIRST_RATE
        self._closing = False
        long: Kind = "long"
        lanes: list[Kind] = ["short", *[long] * LONG_LANES]
        self._threads = [
            threading.Thread(target=self._serve, args=(kind,), name=f"spscanner-{kind}", daemon=True)
            for kind in lanes
        ]
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> int:
        """Number of jobs that nobody reads yet."""
        with self._changed:
            return sum(map(len, self._waiting.values()))

    @property
    def characters(self) -> int:
        """Characters of all jobs that wait or are being read."""
        with self._changed:
            return self._size()

    @property
    def alive(self) -> bool:
        """Whether all of its threads run: without one of them, what waits for it is never read."""
        return all(thread.is_alive() for thread in self._threads)

    def submit(self, job: Job) -> None:
        """Have a job read; its future gets one `Scored` for each request.

        Raises ``RefusedError`` with 429 if too much is waiting, with 503 if the server is stopping.
        """
        with self._changed:
            if self._closing:
                raise RefusedError(503, "the server is stopping; ask another one", retry_after=5)
            limits, size = self.limits, self._size()
            full = sum(map(len, self._waiting.values())) >= limits.waiting_requests
            if full or (size and size + job.characters > limits.waiting_characters):
                wait = max(1, min(60, round(size / self._rate)))
                raise RefusedError(429, f"too many requests are waiting; ask again in {wait} s", wait)
            self._waiting[self._kind(job)].put(job)
            self._changed.notify_all()

    def close(self) -> None:
        """Read what is waiting, accept nothing more, and end the threads."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _kind(self, job: Job) -> Kind:
        return "short" if job.characters <= self.full_characters else "long"

    def _size(self) -> int:
        return self._reading_characters + sum(queue.characters for queue in self._waiting.values())

    def _serve(self, kind: Kind) -> None:
        while jobs := self._next(kind):
            size = sum(job.characters for job in jobs)
            try:
                self._read(kind, [job for job in jobs if self._wanted(job)])
            finally:
                with self._changed:
                    self._reading_characters -= size

    def _next(self, kind: Kind) -> list[Job]:
        """The next jobs to read together; none if the server stops and nothing waits."""
        queue = self._waiting[kind]
        with self._changed:
            self._changed.wait_for(lambda: len(queue) or self._closing)
            if kind == "short" and len(queue):
                self._changed.wait_for(lambda: queue.characters >= self.full_characters, WAIT_SECONDS)
            jobs = queue.take(self.full_characters if kind == "short" else 1)
            self._reading_characters += sum(job.characters for job in jobs)
            return jobs

    def _wanted(self, job: Job) -> bool:
        """Whether somebody waits for the answer; from now on the future is not cancelled, but gets an outcome."""
        if not job.future.set_running_or_notify_cancel():
            return False
        if job.unwanted:
            job.future.set_exception(ScanCancelled("cancelled before it was read"))
        return not job.future.done()

    def _read(self, kind: Kind, jobs: list[Job]) -> None:
        """Read jobs together; if that fails, each alone, so that only the one at fault fails."""
        if not jobs:
            return
        started = time.monotonic()
        try:
            with self._turns.held(kind):
                self._read_together(kind, jobs)
        except ScanCancelled as error:
            for job in jobs:
                if not job.future.done():
                    job.future.set_exception(error)
        except Exception as error:  # whatever a text made the model do must not end the thread
            left = [job for job in jobs if not job.future.done()]
            if len(jobs) == 1:
                _log.exception("a request could not be read")
                for job in left:
                    job.future.set_exception(error)
            else:
                for job in left:
                    self._read(kind, [job])
            return
        if kind == "short":
            measured = sum(job.characters for job in jobs) / max(time.monotonic() - started, 1e-6)
            self._rate += _RATE_SHARE * (measured - self._rate)

    def _read_together(self, kind: Kind, jobs: list[Job]) -> None:
        meter = _LaneMeter(
            progress=jobs[0].progress if len(jobs) == 1 else None,
            cancelled=lambda: all(job.unwanted for job in jobs),
            turns=self._turns,
            kind=kind,
            count=self._count,
        )
        requests = [request for job in jobs for request in self._counted(job, meter)]
        with closing(self._pipelines[kind].run(requests, meter)) as scored:
            for job in jobs:
                results: list[Scored] = [next(scored) for _ in job.requests]
                job.future.set_result(results)

    def _counted(self, job: Job, meter: Meter) -> list[ScanRequest]:
        if job.together and len(job.requests) > 1:
            return self.pipeline.counted_together(job.requests, meter)
        return list(job.requests)


@dataclass(kw_only=True)
class _LaneMeter(Meter):
    """Also counts tokens, and lets other lanes use the model between forward passes and pieces of a text."""

    turns: Turns
    kind: Kind
    count: Callable[[int], None]
    thread: int = field(default_factory=threading.get_ident)
    at_the_end: bool = False

    def after_step(self, tokens: int) -> None:
        self.count(tokens)
        self.at_the_end = self.done + tokens >= self.total
        super().after_step(tokens)
        self.at_the_end = False

    def check(self) -> None:
        super().check()
        # On an accelerator, texts are prepared in another thread while this one reads and holds the turn. After
        # the last pass of what has been prepared, there may be nothing left to take another turn for.
        if threading.get_ident() == self.thread and not self.at_the_end:
            self.turns.pass_on(self.kind)
