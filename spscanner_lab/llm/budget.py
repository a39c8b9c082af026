"""Limits of what asking language models may cost, and counts of what it cost."""

import threading
import time
from dataclasses import dataclass, field

from spscanner_lab.llm.replies import Usage

_FIRST_REPLY_TOKENS = 500  # expected length of a reply before there is any
# one for all budgets, so that a retriever with a budget can be pickled
_COUNTING = threading.Lock()


class RunEndedError(Exception):
    """Nothing more is asked: a limit is reached, or the provider refuses every request.

    Replies are kept.
    """


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices in the user's currency for a million tokens, as providers name them.

    Examples
    --------
    >>> from spscanner_lab.llm.budget import Prices
    >>> from spscanner_lab.llm.replies import Usage
    >>> Prices(prompt=2.5, reply=10).cost(Usage(100_000, 1_000))
    0.26
    """

    prompt: float = 0.0
    reply: float = 0.0

    def cost(self, usage: Usage) -> float:
        """Return what these tokens cost."""
        prompts = usage.prompt_tokens * self.prompt
        replies = usage.reply_tokens * self.reply
        return (prompts + replies) / 1e6


@dataclass(slots=True, kw_only=True)
class Budget:
    """Limits and counts of requests, cost and rate, for several models together.

    Thread-safe.

    A request is sent only if the cost will stay within ``max_cost`` even if it and
    every other request in progress get a reply as long as the longest so far.

    Attributes
    ----------
    prices : Prices
        Prices of tokens; without them nothing costs anything.
    max_requests : int or None
        Includes failed requests and those of earlier runs.
    max_cost, per_minute : float or None
        Limits of cost and of requests a minute.
    requests : int
        Requests so far, including those of earlier runs.
    usage : Usage
        Tokens so far.
    stopped : str
        Why nothing more is asked, or an empty string.
    """

    prices: Prices = field(default_factory=Prices)
    max_requests: int | None = None
    max_cost: float | None = None
    per_minute: float | None = None
    requests: int = 0
    usage: Usage = field(default_factory=Usage)
    stopped: str = field(default="", init=False)
    _longest_reply: int = field(default=0, init=False)  # in tokens
    # tokens of prompts without a reply yet
    _pending_prompts: list[int] = field(default_factory=list, init=False)
    _next_request: float = field(default=float("-inf"), init=False)  # its time

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
        """Raise `RunEndedError` if there is or was a reason to ask nothing more."""
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
            if self.max_cost is not None:
                self._check_cost(prompt_tokens, self.max_cost)
            self._pending_prompts.append(prompt_tokens)
            self.requests += 1
            return self._seconds_to_wait()

    def _check_cost(self, prompt_tokens: int, max_cost: float) -> None:
        """Raise `RunEndedError` if one more request could pass the limit of cost."""
        prompts = [*self._pending_prompts, prompt_tokens]
        reply_tokens = self._longest_reply or _FIRST_REPLY_TOKENS
        pending = Usage(sum(prompts), len(prompts) * reply_tokens)
        if self.prices.cost(self.usage + pending) > max_cost:
            self.check(
                "the next request could pass the limit of cost,"
                f" {max_cost:g}; {self.cost:.4f} is spent"
            )

    def _seconds_to_wait(self) -> float:
        """Return the seconds until the next request's turn, and move the turn on."""
        now = time.monotonic()
        turn = max(now, self._next_request)
        pause = 60 / self.per_minute if self.per_minute else 0.0
        self._next_request = turn + pause
        return turn - now

    def spend(self, prompt_tokens: int, usage: Usage) -> None:
        """Count what a request used, with ``prompt_tokens`` as for its `turn`."""
        with _COUNTING:
            self._pending_prompts.remove(prompt_tokens)
            self.usage += usage
            self._longest_reply = max(self._longest_reply, usage.reply_tokens)
