"""Texts of requests in tokens, counted piece by piece, so that work can be ended."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from spscanner_rag.text.tokenization_in_parts import tokenize_in_parts


def token_pieces(
    tokenizer: Tokenizer, text: str, check: Callable[[], None]
) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """The token ids and offsets of a text in bounded memory.

    ``check``, called between pieces, may raise.
    """
    for piece in tokenize_in_parts(tokenizer, text):
        check()
        yield piece


def first_tokens(
    tokenizer: Tokenizer, text: str, limit: int, check: Callable[[], None]
) -> str:
    """The first ``limit`` tokens of a text, as text."""
    n_left = limit
    for ids, offsets in token_pieces(tokenizer, text, check):
        if len(ids) >= n_left:
            return text[: int(offsets[n_left - 1, 1])]
        n_left -= len(ids)
    return text


def number_of_tokens(tokenizer: Tokenizer, text: str, check: Callable[[], None]) -> int:
    """The number of tokens of a text.

    ``check`` is as for `token_pieces`.
    """
    total = 0
    for ids, _ in token_pieces(tokenizer, text, check):
        total += len(ids)
    return total
