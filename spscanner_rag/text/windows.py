"""Half-overlapping windows of whole units, in which published scanners read.

Source: ``sliding_window`` in ``evaluate.py`` of
https://github.com/MambaRetriever/MambaRetriever, commit 54c3463.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray


def window_ranges(
    unit_ends: NDArray[np.int64], window_tokens: int
) -> list[tuple[int, int]]:
    """First and last unit, both inclusive, of every window.

    ``unit_ends``, (units,), are the units' last tokens. A window starts at a unit and
    holds the whole units that end less than ``window_tokens`` after its first token.
    The next window starts at the last unit that begins in its first half. The last
    window is moved back so that it is full. A unit longer than ``window_tokens`` gets a
    window of its own.

    Examples
    --------
    >>> window_ranges(np.array([9, 19, 29, 39, 49]), window_tokens=25)
    [(0, 1), (1, 2), (2, 3), (3, 4)]
    """
    if not len(unit_ends):
        return []
    unit_starts = np.concatenate(([0], unit_ends[:-1] + 1))
    final = len(unit_ends) - 1
    ranges = []
    first = 0
    unread = 0
    while True:
        start = int(unit_starts[first])
        last = max(int(np.searchsorted(unit_ends, start + window_tokens)) - 1, 0)
        if unit_ends[last] <= start:
            last += 1
        if last >= final:
            last_start = int(unit_ends[final]) - window_tokens
            filled = int(np.searchsorted(unit_starts, last_start))
            ranges.append((min(filled, unread, final), final))
            return ranges
        last = max(last, first)
        ranges.append((first, last))
        unread = last + 1
        # The original lacks these guards: always advance, and skip no unit next to one
        # longer than a window.
        following = int(np.searchsorted(unit_starts, start + window_tokens // 2)) - 1
        first = min(max(following, first + 1), unread)


def average_logits(
    ranges: Sequence[tuple[int, int]], window_logits: Iterable[ArrayLike], n_units: int
) -> NDArray[np.float32]:
    """Mean of each unit's logits over the windows that contain it: (n_units,).

    ``window_logits`` has the logits of each window, (units in it,).

    Examples
    --------
    >>> average_logits([(0, 1), (1, 2)], [[1.0, 2.0], [4.0, 5.0]], n_units=3)
    array([1., 3., 5.], dtype=float32)
    """
    total = np.zeros(n_units, np.float64)
    count = np.zeros(n_units, np.int64)
    for (first, last), logits in zip(ranges, window_logits, strict=True):
        total[first : last + 1] += np.asarray(logits, np.float64)
        count[first : last + 1] += 1
    return (total / np.maximum(count, 1)).astype(np.float32)
