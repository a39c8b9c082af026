"""Neighbours of sentences, and runs of adjacent sentences."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Blocks = NDArray[np.int64]
"""The block of each sentence, ascending: (n,).

Neighbours and merged passages stay inside one block.
"""


def with_neighbours(
    picks: NDArray[np.int64], context: int, blocks: Blocks
) -> list[int]:
    """Indices of ``picks`` and of their neighbours, in document order.

    Neighbours are up to ``context`` sentences on each side of each.

    Examples
    --------
    >>> blocks = np.array([0, 0, 0, 0, 1, 1])
    >>> with_neighbours(np.array([4, 0]), context=1, blocks=blocks)
    [0, 1, 4, 5]
    """
    n = len(blocks)
    reach = min(context, n)
    firsts_of_blocks = np.searchsorted(blocks, blocks[picks], "left")
    stops_of_blocks = np.searchsorted(blocks, blocks[picks], "right")
    firsts = np.maximum(picks - reach, firsts_of_blocks)
    stops = np.minimum(picks + reach + 1, stops_of_blocks)
    edges = np.bincount(firsts, minlength=n + 1) - np.bincount(stops, minlength=n + 1)
    sentences: list[int] = np.flatnonzero(np.cumsum(edges) > 0).tolist()
    return sentences


def runs_of(
    sentences: Sequence[int], blocks: Blocks | None = None
) -> list[tuple[int, int]]:
    """First and last sentence of each unbroken run of ``sentences``, ascending.

    Examples
    --------
    >>> runs_of([0, 1, 2, 5, 7, 8])
    [(0, 2), (5, 5), (7, 8)]
    """
    runs: list[tuple[int, int]] = []
    for number in sentences:
        follows = bool(runs) and number == runs[-1][1] + 1
        if follows and (blocks is None or blocks[number - 1] == blocks[number]):
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs
