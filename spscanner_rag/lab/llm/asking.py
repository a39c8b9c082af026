"""Sends prompts to a language model: several at once, again after a failure, never again after a reply."""

import contextvars
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from spscanner_rag.lab.llm.language_models import LanguageModel
from spscanner_rag.lab.llm.replies import ReplyFile, digest_of
from spscanner_rag.text.units import readable

BLANK = "the reply is blank"
"""The error of a model that replied without a word."""

_ERROR_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to a prompt: its text, or None and the error of the model."""

    text: str | None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """How language models are asked.

    Attributes
    ----------
    replies : ReplyFile or None
        Keeps prompts and replies. Default: none are kept, and every prompt is asked.
    workers : int, default 8
        Number of prompts asked at the same time, at least 1.
    retries : int, default 2
        How often a prompt is asked again after a failure, at least 0. A blank reply is a failure. The time limit
        of a call is a setting of the model itself.
    pause : float, default 1.0
        Seconds before the first retry; each further pause is twice as long.
    progress : callable, optional
        Called with the number of prompts done in this call of `ask`, in the thread that calls it.

    Raises
    ------
    ValueError
        For a number out of its range.
    """

    replies: ReplyFile | None = None
    workers: int = 8
    retries: int = 2
    pause: float = 1.0
    progress: Callable[[int], object] | None = None

    def __post_init__(self) -> None:
        for name, lowest in (("workers", 1), ("retries", 0)):
            value = getattr(self, name)
            if type(value) is not int or value < lowest:
                raise ValueError(f"{name}: got {value!r}; expected a whole number of at least {lowest}")
        if not 0 <= self.pause < float("inf"):
            raise ValueError(f"pause: got {self.pause!r}; expected seconds, at least 0")

    def ask(self, model: LanguageModel, prompts: Iterable[str]) -> list[Reply]:
        """Ask a model, and return its replies in the order of the prompts.

        Equal prompts are asked once. Prompts are consumed as needed, so that a generator need not hold them all in
        memory. When interrupted, it waits for the prompts that are being asked and keeps their replies.
        """
        order: list[str] = []
        replies: dict[str, Reply] = {}
        waiting: deque[tuple[str, Future[Reply]]] = deque()
        stop = threading.Event()

        def take_first() -> None:
            digest, future = waiting.popleft()
            replies[digest] = future.result()
            if self.progress is not None:
                self.progress(len(order) - len(waiting))

        pool = ThreadPoolExecutor(self.workers, thread_name_prefix="spscanner-ask")
        try:
            known: set[str] = set()
            for prompt in map(readable, prompts):
                digest = digest_of(model.name, prompt)
                order.append(digest)
                if digest in known:
                    continue
                known.add(digest)
                context = contextvars.copy_context()  # tracing libraries keep their state in it
                waiting.append((digest, pool.submit(context.run, self._reply, model, prompt, digest, stop)))
                if len(waiting) >= 4 * self.workers:
                    take_first()
            while waiting:
                take_first()
        finally:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
        return [replies[digest] for digest in order]

    def _reply(self, model: LanguageModel, prompt: str, digest: str, stop: threading.Event) -> Reply:
        if self.replies is not None and (stored := self.replies.get(digest)) is not None:
            return Reply(stored)
        began = time.perf_counter()
        for attempt in range(1, self.retries + 2):
            reply = _asked_once(model, prompt)
            if reply.text is not None or attempt > self.retries:
                break
            if stop.wait(self.pause * 2 ** (attempt - 1)):
                break
        if self.replies is not None:
            seconds = time.perf_counter() - began
            self.replies.add(
                model.name, prompt, reply=reply.text, error=reply.error, attempts=attempt, seconds=seconds
            )
        return reply


def _asked_once(model: LanguageModel, prompt: str) -> Reply:
    try:
        text = model(prompt)
    except Exception as error:  # whatever a client, a network or a function may raise
        return Reply(None, f"{type(error).__name__}: {error}"[:_ERROR_CHARACTERS])
    return Reply(text) if text.strip() else Reply(None, BLANK)
