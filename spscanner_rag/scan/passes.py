"""Runs of texts that fill several forward passes, so that similar lengths share one."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

# Texts are prepared until they fill this many forward passes, then read together.
PASSES_AHEAD = 16


def in_runs(
    items: Iterable[T], tokens_of: Callable[[T], int], segment_tokens: int
) -> Iterator[list[T]]:
    """Yield runs of items that fill `PASSES_AHEAD` forward passes.

    Parameters
    ----------
    items : iterable
        What is read, in order.
    tokens_of : callable
        The number of tokens of an item.
    segment_tokens : int
        Tokens per forward pass.

    Examples
    --------
    >>> from spscanner_rag.scan.passes import in_runs
    >>> list(in_runs(["a" * 16, "b", "c"], len, segment_tokens=1))
    [['aaaaaaaaaaaaaaaa'], ['b', 'c']]
    """
    run: list[T] = []
    tokens = 0
    for item in items:
        run.append(item)
        tokens += tokens_of(item)
        if tokens >= PASSES_AHEAD * segment_tokens:
            yield run
            run = []
            tokens = 0
    if run:
        yield run
