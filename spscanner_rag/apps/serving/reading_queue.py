"""The queue between requests and the model: short jobs share forward passes, long ones are read in between."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

from spscanner_rag.apps.serving.limits import Limits, RefusedError
from spscanner_rag.scan.pipeline import Meter, Pipeline, ScanRequest, Scored
from spscanner_rag.scorers import Progress, ScanCancelled
from spscanner_rag.text.units import Unit

_log = logging.getLogger(__name__)

Kind = Literal["short", "long"]

CHARACTERS_PER_TOKEN = 4  # of English text; only sizes of batches depend on it
PASSES_TOGETHER = 4
"""Short jobs are read together up to this many forward passes; a job of more is long, and read alone."""

LONG_PASSES = 2
"""On a CPU, a long job is read in so many times shorter passes: a short one waits for the end of the pass that
is being computed, and smaller products cost little there."""

LONG_LANES = 3  # long jobs that are read at the same time, a forward pass of each in turn
WAIT_SECONDS = 0.003  # time that the first short job waits for others to share its pass
_FIRST_RATE = 40_000.0  # characters a second, until something has been measured
_RATE_SHARE = 0.2  # of the newest measurement in the running mean

SLICE_SECONDS = 0.02
"""A thread keeps its turn at least so long: preparing a short text must not cost it a turn of its own."""


def characters_of(text: str, units: Sequence[Unit] | None) -> int:
    """Characters that the model reads of a text: units of the caller's may have more than the text."""
    return max(len(text), sum(len(unit.model_text) for unit in units or ()))


@dataclass(eq=False, slots=True)
class Job:
    """The texts of one HTTP request, which are answered together."""

    requests: Sequence[ScanRequest]  # at least one
    client: str  # for fairness
    seconds: float  # from now to the answer
    together: bool = True  # the texts are one collection
    progress: Progress | None = None  # called in the reading thread, if the job is read alone
    asked: bool = True  # else the texts are only encoded, for a question that follows
    clock: Callable[[], float] = time.monotonic
    future: Future[list[Scored]] = field(default_factory=Future)
    characters: int = field(init=False)
    _deadline: float = field(init=False)
    _cancelled: bool = False

    def __post_init__(self) -> None:
        # The question is matched with every text, so even an empty text costs something.
        self.characters = sum(
            len(each.query) + characters_of(each.text, each.units) for each in self.requests
        )
        self._deadline = self.clock() + self.seconds

    def cancel(self) -> None:
        """Give the job up: its client is gone."""
        self._cancelled = True

    @property
    def unwanted(self) -> bool:
        """True if nobody waits for the answer any more."""
        return self._cancelled or self.clock() > self._deadline


class FairQueue:
    """Jobs in order for each client, one job of each client after the other. Not thread-safe."""

    def __init__(self) -> None:
        self._of: dict[str, deque[Job]] = {}  # in the order of the clients' next turns
        self.characters = 0

    def __len__(self) -> int:
        return sum(map(len, self._of.values()))

    def put(self, job: Job) -> None:
        """Add a job at the end of its client's queue."""
        self._of.setdefault(job.client, deque()).append(job)
        self.characters += job.characters

    @property
    def next_characters(self) -> int:
        """Of the job that `take` takes first."""
        return next(iter(self._of.values()))[0].characters

    def take(self, characters: int) -> list[Job]:
        """Take jobs until they have this many characters; at least one, unless the queue is empty."""
        taken: list[Job] = []
        size = 0
        while self._of and (not taken or size < characters):
            client = next(iter(self._of))
            own = self._of.pop(client)
            job = own.popleft()
            if own:
                self._of[client] = own  # behind the other clients
            taken.append(job)
            size += job.characters
        self.characters -= size
        return taken


class Turns:
    """Lets one thread use the model at a time, for `SLICE_SECONDS` at least.

    Short and long work then alternate, so that neither starves the other; within one kind, the longest wait is
    first.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[Kind, deque[threading.Event]] = {"short": deque(), "long": deque()}
        self._held = False
        self._since = 0.0  # when the turn was taken

    @contextmanager
    def held(self, kind: Kind) -> Iterator[None]:
        """Hold the turn; `pass_on` lets others go in between."""
        self._take(kind)
        try:
            yield
        finally:
            self._give(kind)

    def pass_on(self, kind: Kind) -> None:
        """Let waiting threads go first, unless the turn has just begun; the caller holds it before and after."""
        with self._lock:
            if not any(self._waiting.values()) or time.monotonic() - self._since < SLICE_SECONDS:
                return
        self._give(kind)
        self._take(kind)

    def _take(self, kind: Kind) -> None:
        with self._lock:
            if not self._held:
                self._held, self._since = True, time.monotonic()
                return
            mine = threading.Event()
            self._waiting[kind].append(mine)
        mine.wait()  # whoever gives the turn up hands it over, so `_held` stays true
        self._since = time.monotonic()

    def _give(self, kind: Kind) -> None:
        other: Kind = "long" if kind == "short" else "short"
        with self._lock:
            following = self._waiting[other] or self._waiting[kind]
            if following:
                following.popleft().set()
            else:
                self._held = False


class ReadingQueue:
    """Reads jobs with one model, in threads of its own.

    Jobs that fit into `PASSES_TOGETHER` forward passes are read together. Longer ones are read one at a time in
    `LONG_LANES` threads, no more characters at once than one request may have, and a waiting batch of short ones
    goes first after each pass. Clients take turns.
    """

    def __init__(self, pipeline: Pipeline, limits: Limits) -> None:
        self.pipeline, self.limits = pipeline, limits
        self.full_characters = pipeline.segment_tokens * PASSES_TOGETHER * CHARACTERS_PER_TOKEN
        shorter = pipeline.segment_tokens // (LONG_PASSES if pipeline.model.device.type == "cpu" else 1)
        self._pipelines: dict[Kind, Pipeline] = {
            "short": pipeline,
            "long": replace(pipeline, segment_tokens=max(1, shorter)),
        }
        self._waiting: dict[Kind, FairQueue] = {"short": FairQueue(), "long": FairQueue()}
        self._changed = threading.Condition()
        self._turns = Turns()
        self._reading: dict[Kind, int] = {"short": 0, "long": 0}  # characters
        self._rate = _FIRST_RATE
        self._closing = False
        self._threads = [
            threading.Thread(target=self._serve, args=(kind,), name=f"spscanner-{kind}", daemon=True)
            for kind in ("short", *("long",) * LONG_LANES)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> int:
        """Number of jobs that nobody reads yet."""
        with self._changed:
            return sum(map(len, self._waiting.values()))

    @property
    def alive(self) -> bool:
        """True if all of its threads run: without one of them, what waits for it is never read."""
        return all(thread.is_alive() for thread in self._threads)

    def submit(self, job: Job) -> None:
        """Have a job read: its future gets a `Scored` each. ``RefusedError``: 429 if full, 503 if closing."""
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
        """Characters of all jobs that wait or are being read."""
        return sum(self._reading.values()) + sum(queue.characters for queue in self._waiting.values())

    def _serve(self, kind: Kind) -> None:
        while jobs := self._next(kind):
            size = sum(job.characters for job in jobs)
            try:
                self._read(kind, [job for job in jobs if self._wanted(job)])
            finally:
                with self._changed:
                    self._reading[kind] -= size
                    self._changed.notify_all()

    def _next(self, kind: Kind) -> list[Job]:
        """The next jobs to read together; none if the server stops and nothing waits."""
        queue = self._waiting[kind]
        with self._changed:
            self._changed.wait_for(lambda: self._has_room(kind) if len(queue) else self._closing)
            if kind == "short" and len(queue):
                self._changed.wait_for(lambda: queue.characters >= self.full_characters, WAIT_SECONDS)
            jobs = queue.take(self.full_characters if kind == "short" else 1)
            self._reading[kind] += sum(job.characters for job in jobs)
            return jobs

    def _has_room(self, kind: Kind) -> bool:
        """False while the next long job and those that are read would take more memory than the largest one."""
        read = self._reading["long"]
        most = self.limits.request_characters
        return kind == "short" or not read or read + self._waiting[kind].next_characters <= most

    def _wanted(self, job: Job) -> bool:
        """True if somebody waits for the answer; from now on the future is not cancelled, but gets an outcome."""
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
        )
        for job in jobs:
            if not job.asked:
                for request in job.requests:
                    self.pipeline.encode(request, meter)
                job.future.set_result([])
        jobs = [job for job in jobs if job.asked]
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
    """Also lets other lanes use the model between forward passes and pieces of a text."""

    turns: Turns
    kind: Kind
    thread: int = field(default_factory=threading.get_ident)
    at_the_end: bool = False

    def after_step(self, tokens: int) -> None:
        self.at_the_end = tokens > 0 and self.done + tokens >= self.total
        super().after_step(tokens)
        self.at_the_end = False

    def check(self) -> None:
        super().check()
        # On an accelerator, texts are prepared in another thread while this one reads and holds the turn. After
        # the last pass of what has been prepared, there may be nothing left to take another turn for.
        if threading.get_ident() == self.thread and not self.at_the_end:
            self.turns.pass_on(self.kind)
