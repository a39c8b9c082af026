"""What asking a language model has cost, and the limit at which asking stops."""

import threading
from dataclasses import dataclass, field

from spscanner_rag.lab.llm.usage import Usage

_FIRST_REPLY_TOKENS = 500
"""What a reply is taken to cost before any has come."""


class BudgetSpentError(Exception):
    """The next request would pass a limit. What was paid for is kept; a larger limit continues."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices in the user's currency for a million tokens, as providers name them.

    Raises
    ------
    ValueError
        For a negative price.
    """

    prompt: float = 0.0
    reply: float = 0.0

    def __post_init__(self) -> None:
        for name in ("prompt", "reply"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(
                    f"price of {name} tokens: got {getattr(self, name)!r}; expected a price per million tokens, "
                    "at least 0"
                )

    def cost(self, usage: Usage) -> float:
        """What these tokens cost."""
        return (usage.prompt_tokens * self.prompt + usage.reply_tokens * self.reply) / 1e6


@dataclass(slots=True)
class Spending:
    """Counts requests and tokens, and refuses a request that would pass a limit. Thread-safe.

    Parameters
    ----------
    prices : Prices
    max_requests : int, optional
        Most requests, those of earlier runs and failed ones included.
    max_cost : float, optional
        Most that all requests may cost. A request is let through only if the limit holds when its reply is as long
        as the longest so far; a longer one may pass the limit by its difference.
    requests, usage
        What earlier runs have used.

    Raises
    ------
    ValueError
        For a limit below 0, or a limit of cost without prices.
    """

    prices: Prices = field(default_factory=Prices)
    max_requests: int | None = None
    max_cost: float | None = None
    requests: int = 0
    usage: Usage = field(default_factory=Usage)
    _reserved: Usage = field(default_factory=Usage, init=False)
    _longest: int = field(default=0, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def __post_init__(self) -> None:
        if self.max_requests is not None and self.max_requests < 0:
            raise ValueError(f"max_requests: got {self.max_requests}; expected at least 0")
        if self.max_cost is not None and not 0 <= self.max_cost < float("inf"):
            raise ValueError(f"max_cost: got {self.max_cost}; expected a cost of at least 0")
        if self.max_cost is not None and not (self.prices.prompt or self.prices.reply):
            raise ValueError(
                "max_cost: got a limit without prices; expected the prices of a million prompt tokens and of a "
                "million reply tokens as well"
            )

    @property
    def cost(self) -> float:
        """What all replies so far have cost."""
        return self.prices.cost(self.usage)

    def reserve(self, prompt_tokens: int) -> Usage:
        """Count a request before it is sent; give what `settle` needs.

        Raises `BudgetSpentError` if it would pass a limit.
        """
        with self._lock:
            asked = Usage(prompt_tokens, self._longest or _FIRST_REPLY_TOKENS)
            if self.max_requests is not None and self.requests >= self.max_requests:
                raise BudgetSpentError(f"the limit of {self.max_requests:,} requests is reached")
            if self.max_cost is not None:
                expected = self.prices.cost(self.usage + self._reserved + asked)
                if expected > self.max_cost:
                    raise BudgetSpentError(
                        f"the next request could pass the limit of cost, {self.max_cost:g}; {self.cost:.4f} "
                        "is spent"
                    )
            self.requests += 1
            self._reserved += asked
            return asked

    def settle(self, reserved: Usage, used: Usage) -> None:
        """Replace what was reserved for a request by what it used; nothing if it failed."""
        with self._lock:
            self._reserved += Usage(-reserved.prompt_tokens, -reserved.reply_tokens)
            self.usage += used
            self._longest = max(self._longest, used.reply_tokens)
