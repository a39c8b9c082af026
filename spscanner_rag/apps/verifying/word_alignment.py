"""The stretch of a text that is most like a quote, and the words that are changed."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Change(NamedTuple):
    """Words of a quote, and those of the text that stand in their place."""

    quote_start: int
    quote_end: int
    text_start: int
    text_end: int


class Alignment(NamedTuple):
    """Where a quote stands in a text, in words, and what is changed."""

    start: int
    end: int
    distance: int  # words changed, added and left out
    changes: tuple[Change, ...]  # ascending


def align(quote: NDArray[np.int64], text: NDArray[np.int64]) -> Alignment:
    """The stretch of a text, (words,), with the least distance from a quote, (words,).

    The distance is that of Levenshtein in words; nothing is counted before and after
    the stretch. Of equally near ones it is the first, as long as it can be.

    Examples
    --------
    >>> alignment = align(np.array([7, 8, 9]), np.array([1, 7, 5, 9, 2]))
    >>> alignment[:3], tuple(alignment.changes[0])
    ((1, 4, 1), (1, 2, 2, 3))
    """
    costs = _costs(quote, text)
    row = len(quote)
    end = int(costs[row].argmin())
    # Equally near, one word later: the last word is changed rather than added.
    while end < len(text) and costs[row, end + 1] == costs[row, end]:
        end += 1
    column = end
    changes: list[Change] = []
    while row:
        here = costs[row, column]
        step = (1, 0)
        if column and here == costs[row - 1, column - 1] + (
            quote[row - 1] != text[column - 1]
        ):
            step = (1, 1)
        elif column and here == costs[row, column - 1] + 1:
            step = (0, 1)
        before = (row - step[0], column - step[1])
        if costs[before] != here:
            _put_before(changes, Change(before[0], row, before[1], column))
        row, column = before
    distance = int(costs[len(quote), end])
    return Alignment(column, end, distance, tuple(reversed(changes)))


def _costs(quote: NDArray[np.int64], text: NDArray[np.int64]) -> NDArray[np.int32]:
    """Least distances of beginnings of the quote, by where they end in the text.

    (words of the quote + 1, words of the text + 1)
    """
    places = np.arange(len(text) + 1, dtype=np.int32)
    costs = np.zeros((len(quote) + 1, len(text) + 1), np.int32)
    for row, word in enumerate(quote, 1):
        above = costs[row - 1]
        best = above + 1
        np.minimum(best[1:], above[:-1] + (text != word), out=best[1:])
        # one more word of the text costs 1, any number of times
        costs[row] = np.minimum.accumulate(best - places) + places
    return costs


def _put_before(changes: list[Change], change: Change) -> None:
    """Add a change before the last added one, or join the two where they touch."""
    if changes:
        later = changes[-1]
        touches = (
            change.quote_end == later.quote_start
            and change.text_end == later.text_start
        )
        if touches:
            changes[-1] = Change(
                change.quote_start, later.quote_end, change.text_start, later.text_end
            )
            return
    changes.append(change)
