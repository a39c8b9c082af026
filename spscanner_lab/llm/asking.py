"""A language model with retries, a budget and a reply cache."""

import contextvars
import hashlib
import json
import random
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from spscanner_lab.llm.language_models import LanguageModel, Usage, reply_text, usage_of
from spscanner_rag.files.writing import (
    append_records,
    complete_lines,
    parse_json,
    parse_object,
)
from spscanner_rag.text.token_counts import CountTokens
from spscanner_rag.text.units import readable

Item = TypeVar("Item")
Result = TypeVar("Result")

_ERROR_CHARACTERS = 500
_FIRST_REPLY_TOKENS = 500  # expected length of a reply before there is any
# items in progress per thread: some take longer than others, and results wait for their
# turn
_AHEAD = 4

_LASTING = re.compile(
    r"insufficient_quota|exceeded your current quota|billing|credit balance|payment"
    r" required|invalid.api.key|"
    r"authentication|permission denied|account.{0,20}(?:deactivated|suspended)",
    re.IGNORECASE,
)
_LASTING_CODES = frozenset({401, 402, 403, 404})
_COUNTING = (
    threading.Lock()
)  # one for all budgets, so that a retriever with a budget can be pickled


def digest_of(model: str, prompt: str) -> str:
    """Return the key of a reply: the SHA-256 of model name and prompt, in hexadecimal."""
    return hashlib.sha256(json.dumps([model, prompt]).encode("ascii")).hexdigest()


class ReplyFile:
    r"""A file of prompts and replies, to which each reply is appended as soon as it arrives. Thread-safe.

    Each line is a JSON object ``{"digest", "model", "prompt", "reply", "attempts",
    "seconds"}``, with ``"error"`` instead of ``"reply"`` if the model failed, and with
    ``"usage"``, ``[prompt tokens, reply tokens]``, if it is known. Errors are kept for
    people to read; the next run asks the prompt again. Memory holds the place of each
    reply, about 100 bytes, but not the reply. A last line without a line break, which a
    killed program leaves, is cut off before the next reply is written. ``ValueError``
    for a damaged line. Only one process at a time may write the file: see
    `folder_lock`.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._writing = threading.Lock()
        self._places: dict[
            bytes, int
        ] = {}  # of each reply's line in the file, by its digest
        self.attempts, self.usage = 0, Usage()
        place = 0
        for number, line in complete_lines(self.path):
            self._take(line, number, place)
            place += len(line)

    def __len__(self) -> int:
        """The number of replies, not counting failures."""
        return len(self._places)

    def get(self, digest: str) -> str | None:
        """Return the reply to a prompt, or None if there is none yet."""
        place = self._places.get(bytes.fromhex(digest))
        if place is None:
            return None
        with self.path.open("rb") as file:
            file.seek(place)
            reply: str = parse_json(file.readline())["reply"]
        return reply

    def add(
        self,
        model: str,
        prompt: str,
        *,
        reply: str | None = None,
        error: str | None = None,
        attempts: int = 1,
        seconds: float = 0.0,
        usage: Usage | None = None,
    ) -> None:
        """Append a reply, or the error if there is none, with its usage if that is known."""
        digest = digest_of(model, prompt)
        record: dict[str, Any] = {"digest": digest, "model": model, "prompt": prompt}
        record |= {"error": error} if reply is None else {"reply": reply}
        record |= {"attempts": attempts, "seconds": round(seconds, 3)}
        record |= {} if usage is None else {"usage": list(usage)}
        with self._writing:
            place = append_records(self.path, [record])
            self.attempts += attempts
            self.usage += usage or Usage()
            if reply is not None:
                self._places[bytes.fromhex(digest)] = place

    def _take(self, line: bytes, number: int, place: int) -> None:
        try:
            record = parse_object(line)
            digest, reply = (
                digest_of(record["model"], record["prompt"]),
                record.get("reply"),
            )
            if digest != record["digest"] or not isinstance(reply, str | None):
                raise ValueError("the digest is not that of its model and prompt")
            self.attempts += int(record.get("attempts", 1))
            self.usage += Usage(*map(int, record.get("usage", ())))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{self.path}, line {number}: expected a prompt and its reply, got"
                f" {line[:60]!r} ({error}); remove the line to ask the prompt again"
            ) from None
        if reply is not None:
            self._places[bytes.fromhex(digest)] = place


class NoReplyError(Exception):
    """The model failed at every attempt."""


class RunEndedError(Exception):
    """Nothing more is asked: a limit is reached, or the provider refuses every request.

    Replies are kept.
    """


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to a prompt: its text, or None and the model's error."""

    text: str | None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices in the user's currency for a million tokens, as providers name them."""

    prompt: float = 0.0
    reply: float = 0.0

    def cost(self, usage: Usage) -> float:
        """Return what these tokens cost."""
        return (
            usage.prompt_tokens * self.prompt + usage.reply_tokens * self.reply
        ) / 1e6


@dataclass(slots=True, kw_only=True)
class Budget:
    """Limits of requests, cost and rate for several models, and counts of what they were asked. Thread-safe.

    A request is sent only if the cost will stay within ``max_cost`` even if it and
    every other request in progress get a reply as long as the longest so far.
    """

    prices: Prices = field(default_factory=Prices)
    max_requests: int | None = (
        None  # includes failed requests and those of earlier runs
    )
    max_cost: float | None = None
    per_minute: float | None = None
    requests: int = 0  # so far, including those of earlier runs
    usage: Usage = field(default_factory=Usage)
    stopped: str = field(default="", init=False)  # why nothing more is asked
    _longest: int = field(default=0, init=False)  # tokens of the longest reply
    _under_way: list[int] = field(
        default_factory=list, init=False
    )  # tokens of prompts without a reply yet
    _next: float = field(
        default=float("-inf"), init=False
    )  # the time of the next request

    def __post_init__(self) -> None:
        if self.max_cost is not None and not (self.prices.prompt or self.prices.reply):
            raise ValueError(
                "max_cost: got a limit without prices; expected the prices of a million"
                " prompt tokens and of a million reply tokens as well"
            )

    @property
    def cost(self) -> float:
        """The cost of all replies so far."""
        return self.prices.cost(self.usage)

    def check(self, reason: str = "") -> None:
        """Raise `RunEndedError` if there is, or was before, a reason to ask nothing more."""
        self.stopped = self.stopped or reason
        if self.stopped:
            raise RunEndedError(self.stopped)

    def turn(self, prompt_tokens: int) -> float:
        """Count a request, and return the seconds to wait before sending it.

        `RunEndedError` beyond a limit.
        """
        with _COUNTING:
            self.check()
            if self.max_requests is not None and self.requests >= self.max_requests:
                self.check(f"the limit of {self.max_requests:,} requests is reached")
            prompts, longest = (
                [*self._under_way, prompt_tokens],
                self._longest or _FIRST_REPLY_TOKENS,
            )
            expected = self.prices.cost(
                self.usage + Usage(sum(prompts), len(prompts) * longest)
            )
            if self.max_cost is not None and expected > self.max_cost:
                limit = (
                    f"the limit of cost, {self.max_cost:g}; {self.cost:.4f} is spent"
                )
                self.check(f"the next request could pass {limit}")
            self._under_way.append(prompt_tokens)
            self.requests += 1
            now = time.monotonic()
            turn = max(now, self._next)
            self._next = turn + (60 / self.per_minute if self.per_minute else 0.0)
            return turn - now

    def spend(self, prompt_tokens: int, used: Usage) -> None:
        """Count what a request used; ``prompt_tokens`` as for its `turn`."""
        with _COUNTING:
            self._under_way.remove(prompt_tokens)
            self.usage += used
            self._longest = max(self._longest, used.reply_tokens)


class Asked(NamedTuple):
    """The number of distinct prompts that a model was asked, including stored ones, and their tokens."""

    prompts: int = 0
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Asks language models: again after a failure, never again after a reply.

    The time limit of a call is a setting of the model itself. A permanent failure (no
    quota, a wrong key, no such model) ends everything. Pauses double, and are
    lengthened at random by up to a quarter, so that several threads do not return at
    once; the provider's client respects waits that the provider requests.
    """

    replies: ReplyFile | None = (
        None  # stores prompts and replies; None asks every prompt
    )
    budget: Budget = field(default_factory=Budget)  # for all models together
    # for prompts, and for replies that do not report their usage; about one token per
    # four characters
    count_tokens: CountTokens = lambda text: -(-len(text) // 4)
    workers: int = 8  # items that `in_order` works on at the same time
    retries: int = (
        2  # how often a prompt is asked again after a failure or a blank reply
    )
    pause: float = 1.0  # seconds before the first retry
    stop: threading.Event = field(
        default_factory=threading.Event
    )  # ends pauses; nothing more is asked
    _asked: dict[LanguageModel, dict[str, Usage]] = field(
        default_factory=dict, init=False
    )  # by prompt
    _turns: dict[str, threading.Lock] = field(
        default_factory=dict, init=False
    )  # by prompt

    def asked(self, model: LanguageModel) -> Asked:
        """The prompts that `reply` asked a model."""
        own = self._asked.get(model, {}).values()
        return Asked(len(own), sum(own, Usage()))

    def reply(self, model: LanguageModel, prompt: str) -> Reply:
        """Like `ask`, but return an error as part of the reply."""
        prompt = readable(prompt)
        try:
            reply = Reply(self.ask(model, prompt))
        except (NoReplyError, RunEndedError) as error:
            reply = Reply(None, str(error))
            if isinstance(error, RunEndedError):
                self.stop.set()
        usage = Usage(self.count_tokens(prompt), self.count_tokens(reply.text or ""))
        self._asked.setdefault(model, {})[digest_of(model.name, prompt)] = usage
        return reply

    def ask(self, model: LanguageModel, prompt: str) -> str:
        """Return the reply to a prompt: the stored one, or else the model's.

        `NoReplyError` if the model failed at every attempt; `RunEndedError` if nothing
        more may be asked.
        """
        prompt = readable(prompt)
        digest = digest_of(model.name, prompt)
        # the same prompt in another thread waits for this reply
        with self._turns.setdefault(digest, threading.Lock()):
            if (
                self.replies is not None
                and (stored := self.replies.get(digest)) is not None
            ):
                return stored
            return self._reply(model, prompt)

    def in_order(
        self, items: Iterable[Item], work: Callable[[Item], Result]
    ) -> Generator[Result, None, None]:
        """Work on items in several threads, and yield the results in the order of the items.

        Only a few items are held at a time. An exception of ``work`` ends the stream at
        its item. At the end, early or not, ``stop`` is set and the work in progress is
        waited for.
        """
        waiting: deque[Future[Result]] = deque()
        pool = ThreadPoolExecutor(self.workers, thread_name_prefix="spscanner-ask")
        try:
            for item in items:
                context = (
                    contextvars.copy_context()
                )  # tracing libraries keep their state in it
                waiting.append(pool.submit(context.run, work, item))
                if len(waiting) >= _AHEAD * self.workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            self.stop.set()
            pool.shutdown(wait=True, cancel_futures=True)

    def _reply(self, model: LanguageModel, prompt: str) -> str:
        began, tokens = time.perf_counter(), self.count_tokens(prompt)
        for attempt in range(1, self.retries + 2):
            self._wait(self.budget.turn(tokens))
            text, used, error = self._asked_once(model, prompt, tokens)
            self.budget.spend(tokens, used)
            lasting = error is not None and _lasts(error)
            if error is None or lasting or attempt > self.retries:
                break
            self._wait(self.pause * 2 ** (attempt - 1) * (1 + random.random() / 4))
        words = (
            str(error)
            if isinstance(error, NoReplyError)
            else f"{type(error).__name__}: {error}"
        )
        outcome = (
            {"reply": text} if error is None else {"error": words[:_ERROR_CHARACTERS]}
        )
        if self.replies is not None:
            seconds = time.perf_counter() - began
            self.replies.add(
                model.name,
                prompt,
                attempts=attempt,
                seconds=seconds,
                usage=used,
                **outcome,
            )
        if error is None:
            return text
        if lasting:
            self.budget.check(outcome["error"])
        raise NoReplyError(outcome["error"])

    def _asked_once(
        self, model: LanguageModel, prompt: str, tokens: int
    ) -> tuple[str, Usage, Exception | None]:
        try:
            got = model.ask(prompt)
            text = reply_text(got)
        except (
            Exception
        ) as error:  # a client, a network or a function may raise anything
            return "", Usage(), error
        used = usage_of(got) or Usage(tokens, self.count_tokens(text))
        return text, used, None if text.strip() else NoReplyError("the reply is blank")

    def _wait(self, seconds: float) -> None:
        if self.stop.wait(seconds) if seconds > 0 else self.stop.is_set():
            self.budget.check()
            raise RunEndedError("the run is ending")


def _lasts(error: Exception) -> bool:
    codes = [
        getattr(each, "status_code", None)
        for each in (error, getattr(error, "response", None))
    ]
    said = f"{type(error).__name__} {error}"
    return not _LASTING_CODES.isdisjoint(codes) or bool(_LASTING.search(said))
