"""Half-overlapping windows of whole units, and the mean of a unit's logits over them.

The published scanners read long documents this way. Source: ``sliding_window`` in ``evaluate.py`` of
https://github.com/MambaRetriever/MambaRetriever, commit 54c3463.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray


def window_ranges(unit_ends: NDArray[np.int64], window_tokens: int) -> list[tuple[int, int]]:
    """First and last unit, both inclusive, of every window; ``unit_ends``, (units,), are the units' last tokens.

    A window starts at a unit and holds the whole units that end less than ``window_tokens`` after its first token.
    The next window starts at the last unit that begins in its first half. The last window is moved back so that it
    is full. A unit longer than ``window_tokens`` gets a window of its own.
    """
    if not len(unit_ends):
        return []
    unit_starts = np.concatenate(([0], unit_ends[:-1] + 1))
    final = len(unit_ends) - 1
    ranges = []
    first = unread = 0
    while True:
        start = int(unit_starts[first])
        last = max(int(np.searchsorted(unit_ends, start + window_tokens)) - 1, 0)
        if unit_ends[last] <= start:
            last += 1
        if last >= final:
            filled = int(np.searchsorted(unit_starts, int(unit_ends[final]) - window_tokens))
            ranges.append((min(filled, unread, final), final))
            return ranges
        last = max(last, first)
        ranges.append((first, last))
        unread = last + 1
        # The original lacks these guards: always advance, and skip no unit next to one longer than a window.
        following = int(np.searchsorted(unit_starts, start + window_tokens // 2)) - 1
        first = min(max(following, first + 1), unread)


def average_logits(
    ranges: Sequence[tuple[int, int]], window_logits: Iterable[ArrayLike], n_units: int
) -> NDArray[np.float32]:
    """Mean of each unit's logits, (units in it,) of each window, over the windows that contain it: (n_units,)."""
    total = np.zeros(n_units, np.float64)
    count = np.zeros(n_units, np.int64)
    for (first, last), logits in zip(ranges, window_logits, strict=True):
        total[first : last + 1] += np.asarray(logits, np.float64)
        count[first : last + 1] += 1
    return (total / np.maximum(count, 1)).astype(np.float32)
