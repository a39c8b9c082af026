"""Values of a text's words, looked up for the tokens that are read."""

from collections.abc import Callable
from functools import cached_property
from typing import Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lexical.words import TextWords

_TOKENS_AT_ONCE: Final = 2**18
"""Bounds memory: a text of emoji has millions of tokens."""

T = TypeVar("T", bound=np.generic)


class TokenValues(Generic[T]):
    """The value of the word of each token of a text, made for what is asked for.

    Parameters
    ----------
    make_values : callable
        Returns the value of each word of the vocabulary, and that of no word at the
        end: (vocabulary + 1, ...). Called at most once.
    words : TextWords
        The words of the text.
    token_starts, token_ends : array (tokens,)
        Where the tokens are in the joined model text.

    Examples
    --------
    >>> from spscanner_rag.lexical.words import index_words
    >>> words = index_words(["The ship left."])
    >>> lengths = TokenValues(
    ...     lambda: np.array([*map(len, words.vocabulary), 0]),
    ...     words,
    ...     np.array([0, 4, 9, 13]),
    ...     np.array([3, 8, 13, 14]),
    ... )
    >>> lengths[1:].tolist()
    [4, 4, 0]
    """

    def __init__(
        self,
        make_values: Callable[[], NDArray[T]],
        words: TextWords,
        token_starts: NDArray[np.integer],
        token_ends: NDArray[np.integer],
    ) -> None:
        self._make_values = make_values
        self._words = words
        self._token_starts = token_starts
        self._token_ends = token_ends

    def __len__(self) -> int:
        return len(self._token_starts)

    def __getitem__(self, tokens: slice) -> NDArray[T]:
        """The values of a range of tokens: (tokens, ...)."""
        return of_tokens(
            self._values,
            self._words,
            self._token_starts[tokens],
            self._token_ends[tokens],
        )

    @cached_property
    def _values(self) -> NDArray[T]:
        return self._make_values()


def of_tokens(
    values: NDArray[T],
    words: TextWords,
    token_starts: NDArray[np.integer],
    token_ends: NDArray[np.integer],
) -> NDArray[T]:
    """The value of the word that contains each token's last character: (tokens, ...).

    ``values`` is (vocabulary + 1, ...); the last is for tokens without a word.
    """
    of_token = np.empty((len(token_starts), *values.shape[1:]), values.dtype)
    of_token[:] = values[-1]
    if not len(words.starts):
        return of_token
    for first in range(0, len(token_starts), _TOKENS_AT_ONCE):
        starts = token_starts[first : first + _TOKENS_AT_ONCE]
        ends = token_ends[first : first + _TOKENS_AT_ONCE]
        # The last word that starts before the token's end, if it extends to that end.
        word = np.searchsorted(words.starts, ends, side="left") - 1  # (tokens,)
        extends = (word >= 0) & (words.ends[word] >= ends) & (ends > starts)
        tokens = np.flatnonzero(extends)
        of_token[first + tokens] = values[words.numbers[word[tokens]]]
    return of_token
