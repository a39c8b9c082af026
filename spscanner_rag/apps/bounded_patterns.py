"""Regular expressions of a client, matched within a time that the server sets."""

import time
from collections.abc import Sequence
from typing import Annotated

import regex
from pydantic import Field

MOST_PATTERNS = 20
LONGEST_PATTERN = 200
"""The most characters of an expression."""

SECONDS = 2.0
"""The most time to match the expressions of one request with all its sentences."""

Patterns = Annotated[
    list[Annotated[str, Field(max_length=LONGEST_PATTERN)]],
    Field(min_length=1, max_length=MOST_PATTERNS, fail_fast=True),
]


class BoundedPatterns:
    r"""Tells whether one of some expressions is found in a sentence, for `Selection`.

    An expression may need a time that grows exponentially with the sentence, and the
    ``re`` module would keep all other threads waiting meanwhile.

    Parameters
    ----------
    patterns : sequence of str
        Regular expressions; ``ValueError`` for one that is not valid.
    seconds : float, default `SECONDS`
        The time for all sentences together. A call beyond it raises ``ValueError``.

    Examples
    --------
    >>> has_date = BoundedPatterns([r"\d{4}-\d\d"])
    >>> has_date("Signed on 1814-09.")
    True
    """

    def __init__(self, patterns: Sequence[str], seconds: float = SECONDS) -> None:
        try:
            self._patterns = [regex.compile(pattern) for pattern in patterns]
        except regex.error as error:
            raise ValueError(
                f"always_keep: got an expression that is not valid ({error});"
                " expected regular expressions"
            ) from None
        self._seconds = seconds
        self._seconds_left = seconds

    def __call__(self, sentence: str) -> bool:
        """True if an expression is found in the sentence."""
        began = time.monotonic()
        try:
            return self._search(sentence, began)
        finally:
            self._seconds_left -= time.monotonic() - began

    def _search(self, sentence: str, began: float) -> bool:
        for pattern in self._patterns:
            seconds = self._seconds_left - (time.monotonic() - began)
            try:
                if seconds <= 0:
                    raise TimeoutError
                if pattern.search(sentence, timeout=seconds, concurrent=True):
                    return True
            except TimeoutError:
                raise ValueError(
                    "always_keep: the expressions took longer than"
                    f" {self._seconds:g} s; expected simpler ones"
                ) from None
        return False
