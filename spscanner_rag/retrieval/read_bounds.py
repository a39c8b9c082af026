"""How much is read for one query."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from spscanner_rag.retrieval.scorer_choice import ScorerChoice

ReadTokens = int | Literal["auto"] | None

# Two cores take 5 to 15 seconds for the tokens of the second.
READ_TOKENS = 200_000
READ_TOKENS_ON_CPU = 100_000

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReadBounds:
    """How much is read for one query.

    A text that would exceed ``read_tokens`` is left out, except the first.

    Parameters
    ----------
    read_documents : int, optional
        Maximum number of documents, at least 1; None for no bound.
    read_tokens : int or "auto", optional
        Maximum number of their tokens, at least 1; None for no bound. "auto" depends on
        the device; see `on`.

    Raises
    ------
    ValueError
        For anything else.

    Examples
    --------
    >>> ReadBounds(read_documents=2, read_tokens=100).within([60, 50, 40, 30])
    [0, 2]
    """

    read_documents: int | None = 10
    read_tokens: ReadTokens = "auto"

    def __post_init__(self) -> None:
        _check_bound("read_documents", self.read_documents, "")
        if self.read_tokens != "auto":
            _check_bound("read_tokens", self.read_tokens, '"auto", ')

    def on(self, choice: ScorerChoice) -> "ReadBounds":
        """Return the bounds with "auto" resolved if the scorer runs on a CPU."""
        if self.read_tokens == "auto" and choice.on_cpu:
            return replace(self, read_tokens=READ_TOKENS_ON_CPU)
        return self

    def within(self, tokens: Iterable[int]) -> list[int]:
        """Indices of the texts to read, from the tokens of each, the best text first.

        Parameters
        ----------
        tokens : iterable of int
            Tokens of each text, in the order of the first stage.
        """
        token_bound = READ_TOKENS if self.read_tokens == "auto" else self.read_tokens
        chosen: list[int] = []
        total = 0
        left_out = 0
        for number, n_tokens in enumerate(tokens):
            if self.read_documents is not None and len(chosen) == self.read_documents:
                break
            if chosen and token_bound is not None and total + n_tokens > token_bound:
                left_out += 1
                continue
            chosen.append(number)
            total += n_tokens
        if left_out:
            _LOGGER.info(
                "read_tokens: %d documents of %d tokens are read, %d are left out",
                len(chosen),
                total,
                left_out,
            )
        return chosen


def _check_bound(name: str, value: object, also: str) -> None:
    """Raise ``ValueError`` for a bound that is neither None nor at least 1."""
    if value is None or (type(value) is int and value >= 1):
        return
    raise ValueError(
        f"{name}: got {value!r}; expected an integer of at least 1,"
        f" {also}or None for no bound"
    )
