"""Asks language models, with retries, a budget and a file of replies."""

import contextvars
import random
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from spscanner_lab.llm.budget import Budget, RunEndedError
from spscanner_lab.llm.language_models import LanguageModel
from spscanner_lab.llm.replies import Usage, reply_text, usage_of
from spscanner_lab.llm.reply_file import ReplyFile, digest_of
from spscanner_rag.text.surrogates import replace_surrogates
from spscanner_rag.text.token_counts import CountTokens

Item = TypeVar("Item")
Result = TypeVar("Result")

_ERROR_CHARACTERS = 500
# Items in progress per thread: some take longer than others, and results wait for their
# turn.
_AHEAD = 4

_LASTING = re.compile(
    r"insufficient_quota|exceeded your current quota|billing|credit balance"
    r"|payment required|invalid.api.key|authentication|permission denied"
    r"|account.{0,20}(?:deactivated|suspended)",
    re.IGNORECASE,
)
_LASTING_CODES = frozenset({401, 402, 403, 404})


class NoReplyError(Exception):
    """The model failed at every attempt."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to a prompt: its text, or None and the model's error."""

    text: str | None
    error: str | None = None


class PromptCount(NamedTuple):
    """How many distinct prompts a model got, stored ones too, and their tokens."""

    prompts: int = 0
    usage: Usage = Usage()


class _Attempt(NamedTuple):
    """What came of sending a prompt once: a text, or an error."""

    text: str
    usage: Usage
    error: Exception | None


def _approximate_tokens(text: str) -> int:
    """Return about the number of tokens of a text: one for four characters."""
    return -(-len(text) // 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Asks language models: again after a failure, never again after a reply.

    The time limit of a call is a setting of the model itself. A permanent failure (no
    quota, a wrong key, no such model) ends everything. Pauses double, and are
    lengthened at random by up to a quarter, so that several threads do not return at
    once; the provider's client respects waits that the provider requests.

    Attributes
    ----------
    replies : ReplyFile or None
        Stores prompts and replies; None asks every prompt.
    budget : Budget
        For all models together.
    count_tokens : callable
        Counts the tokens of prompts, and of replies that do not report their usage.
    workers : int
        Items that `in_order` works on at the same time.
    retries : int
        How often a prompt is asked again after a failure or a blank reply.
    pause : float
        Seconds before the first retry.
    stop : threading.Event
        Ends pauses once it is set; nothing more is asked.

    Examples
    --------
    >>> from spscanner_lab.llm.asking import Asker
    >>> from spscanner_lab.llm.language_models import LanguageModel
    >>> asker = Asker()
    >>> asker.ask(LanguageModel("shouting", str.upper), "who signed it?")
    'WHO SIGNED IT?'
    >>> asker.budget.requests
    1
    """

    replies: ReplyFile | None = None
    budget: Budget = field(default_factory=Budget)
    count_tokens: CountTokens = _approximate_tokens
    workers: int = 8
    retries: int = 2
    pause: float = 1.0
    stop: threading.Event = field(default_factory=threading.Event)
    # usage by prompt, for each model
    _usages: dict[LanguageModel, dict[str, Usage]] = field(
        default_factory=dict, init=False
    )
    # by prompt: the same prompt in another thread waits for the first one's reply
    _locks: dict[str, threading.Lock] = field(default_factory=dict, init=False)

    def count_of(self, model: LanguageModel) -> PromptCount:
        """Return how many prompts `reply` sent to a model."""
        usages = self._usages.get(model, {}).values()
        return PromptCount(len(usages), sum(usages, Usage()))

    def reply(self, model: LanguageModel, prompt: str) -> Reply:
        """Like `ask`, but return an error as part of the reply."""
        prompt = replace_surrogates(prompt)
        try:
            reply = Reply(self.ask(model, prompt))
        except NoReplyError as error:
            reply = Reply(None, str(error))
        except RunEndedError as error:
            reply = Reply(None, str(error))
            self.stop.set()
        usage = Usage(self.count_tokens(prompt), self.count_tokens(reply.text or ""))
        self._usages.setdefault(model, {})[digest_of(model.name, prompt)] = usage
        return reply

    def ask(self, model: LanguageModel, prompt: str) -> str:
        """Return the reply to a prompt: the stored one, or else the model's.

        `NoReplyError` if the model failed at every attempt; `RunEndedError` if nothing
        more may be asked.
        """
        prompt = replace_surrogates(prompt)
        digest = digest_of(model.name, prompt)
        with self._locks.setdefault(digest, threading.Lock()):
            if self.replies is not None:
                stored_reply = self.replies.get(digest)
                if stored_reply is not None:
                    return stored_reply
            return self._new_reply(model, prompt)

    def in_order(
        self, items: Iterable[Item], work: Callable[[Item], Result]
    ) -> Generator[Result, None, None]:
        """Work on items in several threads, and yield results in the items' order.

        Only a few items are held at a time. An exception of ``work`` ends the stream at
        its item. At the end, early or not, ``stop`` is set and the work in progress is
        waited for.
        """
        waiting: deque[Future[Result]] = deque()
        pool = ThreadPoolExecutor(self.workers, thread_name_prefix="spscanner-ask")
        try:
            for item in items:
                # tracing libraries keep their state in the context
                context = contextvars.copy_context()
                waiting.append(pool.submit(context.run, work, item))
                if len(waiting) >= _AHEAD * self.workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            self.stop.set()
            pool.shutdown(wait=True, cancel_futures=True)

    def _new_reply(self, model: LanguageModel, prompt: str) -> str:
        """Send a prompt until there is a reply, and store it or the error."""
        start = time.perf_counter()
        prompt_tokens = self.count_tokens(prompt)
        for attempts in range(1, self.retries + 2):
            self._wait(self.budget.turn(prompt_tokens))
            attempt = self._attempt(model, prompt, prompt_tokens)
            self.budget.spend(prompt_tokens, attempt.usage)
            is_lasting = attempt.error is not None and _lasts(attempt.error)
            if attempt.error is None or is_lasting or attempts > self.retries:
                break
            lengthened = 1 + random.random() / 4
            self._wait(self.pause * 2 ** (attempts - 1) * lengthened)
        reply: str | None = attempt.text
        message = None
        if attempt.error is not None:
            reply = None
            message = _message_of(attempt.error)
        if self.replies is not None:
            self.replies.add(
                model.name,
                prompt,
                reply=reply,
                error=message,
                attempts=attempts,
                seconds=time.perf_counter() - start,
                usage=attempt.usage,
            )
        if message is None:
            return attempt.text
        if is_lasting:
            self.budget.check(message)
        raise NoReplyError(message)

    def _attempt(
        self, model: LanguageModel, prompt: str, prompt_tokens: int
    ) -> _Attempt:
        """Send a prompt once, and catch whatever a client or a network raises."""
        try:
            reply = model.ask(prompt)
            text = reply_text(reply)
        except Exception as error:
            return _Attempt("", Usage(), error)
        usage = usage_of(reply) or Usage(prompt_tokens, self.count_tokens(text))
        if not text.strip():
            return _Attempt(text, usage, NoReplyError("the reply is blank"))
        return _Attempt(text, usage, None)

    def _wait(self, seconds: float) -> None:
        is_ending = self.stop.wait(seconds) if seconds > 0 else self.stop.is_set()
        if is_ending:
            self.budget.check()
            raise RunEndedError("the run is ending")


def _message_of(error: Exception) -> str:
    message = f"{type(error).__name__}: {error}"
    if isinstance(error, NoReplyError):
        message = str(error)
    return message[:_ERROR_CHARACTERS]


def _lasts(error: Exception) -> bool:
    """Whether the same error would come again however often a prompt is sent."""
    response = getattr(error, "response", None)
    codes = {
        getattr(error, "status_code", None),
        getattr(response, "status_code", None),
    }
    if codes & _LASTING_CODES:
        return True
    return bool(_LASTING.search(f"{type(error).__name__} {error}"))
