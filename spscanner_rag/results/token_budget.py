"""A token budget that is filled with sentences.

Neighbours, and runs of adjacent sentences.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.text.token_counts import CountTokens

Blocks = NDArray[np.int64]
"""The block of each sentence, ascending: (n,).

Neighbours and merged passages stay inside one block.
"""


def with_neighbours(
    picks: NDArray[np.int64], context: int, blocks: Blocks
) -> list[int]:
    """Indices of ``picks`` and of up to ``context`` sentences on each side of each, in document order."""
    context, n = min(context, len(blocks)), len(blocks)
    firsts = np.maximum(picks - context, np.searchsorted(blocks, blocks[picks], "left"))
    stops = np.minimum(
        picks + context + 1, np.searchsorted(blocks, blocks[picks], "right")
    )
    edges = np.bincount(firsts, minlength=n + 1) - np.bincount(stops, minlength=n + 1)
    kept: list[int] = np.flatnonzero(np.cumsum(edges) > 0).tolist()
    return kept


def runs(kept: Sequence[int], blocks: Blocks | None = None) -> list[tuple[int, int]]:
    """First and last sentence of each unbroken run in ``kept`` (ascending)."""
    found: list[tuple[int, int]] = []
    for number in kept:
        follows = bool(found) and number == found[-1][1] + 1
        if follows and (blocks is None or blocks[number - 1] == blocks[number]):
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


class TokenBudget:
    """Fills a budget of tokens: the best sentences first, then their neighbours.

    What does not fit is skipped.

    With most tokenizers, a joined text does not have exactly as many tokens as its
    sentences together, so `shrink` measures at the end.
    """

    def __init__(
        self,
        text: str,
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        blocks: Blocks,
        max_tokens: int,
        count: CountTokens,
    ) -> None:
        self.text, self.max_tokens, self.count = text, max_tokens, count
        self.starts, self.ends, self.blocks = (
            starts.tolist(),
            ends.tolist(),
            blocks.tolist(),
        )
        self.line_break = line_break = count("\n")
        self.used = 0  # tokens of the kept sentences, each with a line break
        # tokens of the white space between adjacent kept sentences, beyond the line
        # breaks
        self.extra = 0
        self.costs: dict[
            int, int
        ] = {}  # kept sentence -> its tokens, in the order they were taken
        self.free = list(range(len(starts)))  # the other sentences
        # tokens of the white space between two sentences, beyond the line break already
        # counted
        self._gap_cost = cache(
            lambda gap: 0 if gap == "\n" else count(gap) - line_break
        )

    def fill(self, picks: Sequence[int], context: int) -> None:
        """Take what fits of ``picks`` (best first), then of their neighbours, nearest first."""
        for number in picks:
            if self.used >= self.max_tokens:
                break
            self._take(number)
        for number in tuple(self.costs) if context else ():
            if self.used >= self.max_tokens:
                break
            self._take_neighbours(number, context)

    def shrink(self, measure: Callable[[list[int]], int]) -> list[int]:
        """Drop the sentences taken last until ``measure(kept)`` tokens fit.

        Return the kept indices, ascending.
        """
        order = list(self.costs)
        while order:
            kept = sorted(order)
            over = measure(kept) - self.max_tokens
            if over <= 0:
                return kept
            half = (
                len(order) // 2
            )  # drop at most half on an estimate, then measure again
            while len(order) > half and over > 0:
                over -= max(self.costs[order.pop()], 1)
        return []

    def _take(self, number: int) -> bool:
        sentence = self.text[self.starts[number] : self.ends[number]]
        cost = self.count(sentence + "\n")
        extra = self.extra + sum(
            self._gap_cost(self.text[self.ends[left] : self.starts[left + 1]])
            for left, other in ((number - 1, number - 1), (number, number + 1))
            if other in self.costs and self.blocks[other] == self.blocks[number]
        )
        others = self.used + max(0, extra)
        over = others + cost - self.max_tokens
        if over > 0 and (
            over > self.line_break or others + self.count(sentence) > self.max_tokens
        ):
            # it would not fit even as the last sentence, without a line break
            return False
        self.used += cost
        self.extra = extra
        self.costs[number] = cost
        del self.free[bisect_left(self.free, number)]
        return True

    def _take_neighbours(self, number: int, context: int) -> None:
        """Take the nearest free sentence until none on either side connects, is near enough and fits."""
        sides = [-1, 0]  # before and after the place of ``number`` among the free ones
        while sides:
            place = bisect_left(self.free, number)
            reach = []
            for side in sides:
                found = (
                    self.free[place + side]
                    if 0 <= place + side < len(self.free)
                    else number
                )
                if (
                    0 < abs(found - number) <= context
                    and self.blocks[found] == self.blocks[number]
                ):
                    reach.append((abs(found - number), side, found))
            if not reach:
                return
            _, nearest, found = min(reach)  # if equally near, the one before
            fits = self._take(found)
            sides = [side for _, side, _ in reach if fits or side != nearest]
