"""Lay the tokens of a text's sentences out in overlapping windows, so that each is read in its context."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

WINDOW_TOKENS = 200
"""Of whole sentences in one window, half of which the next window reads again: a sentence at the edge of one
stands inside another. On 192 questions, recall@10 was 55.4 so, 52.9 with 100 tokens, and 49.6 without overlap."""


class TokenizedSentences(NamedTuple):
    """The tokens of sentences, one after the other."""

    ids: NDArray[np.int32]  # (tokens,)
    ends: NDArray[np.int64]  # (sentences,): the number of tokens up to and with each sentence

    @classmethod
    def of(cls, sentences: Sequence[Sequence[int]]) -> "TokenizedSentences":
        """Join the token ids of sentences."""
        ids = [np.asarray(ids, np.int32) for ids in sentences]
        return cls(
            np.concatenate([*ids, np.empty(0, np.int32)]),
            np.cumsum([len(own) for own in ids], dtype=np.int64),
        )

    def sentence_of(self, start: int, end: int) -> NDArray[np.int64]:
        """The number of the sentence that each token of a range is in: (tokens of the range,)."""
        return np.searchsorted(self.ends, np.arange(start, end), side="right")

    def windows(self, most: int = WINDOW_TOKENS) -> list[tuple[int, int]]:
        """Token ranges that together hold every token: whole sentences, up to ``most`` tokens.

        Each begins with the last sentence that starts in the first half of the one before, if that is another. A
        longer sentence is cut to windows of its own.
        """
        starts = np.concatenate([[0], self.ends[:-1]])
        found: list[tuple[int, int]] = []
        first, total = 0, int(self.ends[-1]) if len(self.ends) else 0
        while first < total:
            inside = int(np.searchsorted(self.ends, first + most, side="right")) - 1
            stop = int(self.ends[inside]) if inside >= 0 else 0
            if stop <= first:  # the sentence alone is longer
                stop = min(first + most, int(self.ends[np.searchsorted(self.ends, first, side="right")]))
            if found and stop == found[-1][1]:  # the next sentence is too long to join: nothing new
                first = stop
                continue
            found.append((first, stop))
            if stop == total:
                break
            middle = int(np.searchsorted(starts, (first + stop) // 2, side="right")) - 1
            following = int(starts[middle])
            if following <= first:  # its first sentence fills more than half of it
                after = int(np.searchsorted(starts, first, side="right"))
                following = min(stop, int(starts[after])) if after < len(starts) else stop
            first = following
        return found
