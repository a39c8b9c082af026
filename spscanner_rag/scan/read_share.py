"""How much of a text the token reader reads, and which sentences.

A sentence scan estimates every sentence's logit at once. The token reader then reads
the likeliest sentences, each with some before and after it.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.scorers import Read

AUTO_SHARE: Final = 0.2
"""The share that "auto" reads of a long text."""

SHORT_TOKENS: Final = 4096
"""A text with at most this many tokens is read as a whole by "auto"."""

_BEFORE: Final = 4  # sentences that are read before a likely one
_AFTER: Final = 2

SentenceRange = tuple[int, int]  # the first and the last sentence of a stretch


def token_budget(read: Read, n_tokens: int) -> int | None:
    """Return how many tokens are read, or None for all.

    Parameters
    ----------
    read : "auto", "all" or float
        The option.
    n_tokens : int
        Tokens of the text, or of all texts that are searched together.
    """
    if read == "all" or read == 1:
        return None
    if read == "auto":
        if n_tokens <= SHORT_TOKENS:
            return None
        read = AUTO_SHARE
    return round(float(read) * n_tokens)


def likeliest_stretches(
    estimates: Sequence[NDArray[np.float32]],
    unit_tokens: Sequence[NDArray[np.int64]],
    budget: int,
) -> list[list[SentenceRange]]:
    """Choose the stretches of each text that are read, in order.

    The likeliest sentences of all texts come first, each with `_BEFORE` sentences
    before and `_AFTER` after it, until the tokens would exceed the budget.

    Parameters
    ----------
    estimates : sequence of arrays (sentences,)
        The estimated logits of each text.
    unit_tokens : sequence of arrays (sentences,)
        The tokens of each text's sentences.
    budget : int
        Tokens that may be read of all texts together.

    Examples
    --------
    >>> import numpy as np
    >>> from spscanner_rag.scan.read_share import likeliest_stretches
    >>> likely = np.float32([0, 0, 0, 0, 0, 0, 9, 0, 0, 0])
    >>> likeliest_stretches([likely], [np.full(10, 5)], budget=40)
    [[(2, 8)]]
    """
    is_read = [np.zeros(len(of_text), bool) for of_text in estimates]
    text_numbers = np.repeat(np.arange(len(estimates)), list(map(len, estimates)))
    if not len(text_numbers):
        return [[] for _ in estimates]
    sentence_numbers = np.concatenate([np.arange(len(text)) for text in estimates])
    order = np.argsort(-np.concatenate(estimates), kind="stable")
    tokens_left = budget
    for place in order.tolist():
        text = int(text_numbers[place])
        sentence = int(sentence_numbers[place])
        stretch = slice(max(0, sentence - _BEFORE), sentence + _AFTER + 1)
        unread = ~is_read[text][stretch]
        tokens = int(unit_tokens[text][stretch][unread].sum())
        if tokens > tokens_left:
            break
        is_read[text][stretch] = True
        tokens_left -= tokens
    return [_ranges(mask) for mask in is_read]


def _ranges(mask: NDArray[np.bool_]) -> list[SentenceRange]:
    """The ranges of true values, each with its first and last number."""
    padded = np.concatenate([[False], mask, [False]])
    changes = np.flatnonzero(padded[1:] != padded[:-1])
    ranges = []
    for start, stop in changes.reshape(-1, 2).tolist():
        ranges.append((start, stop - 1))
    return ranges
