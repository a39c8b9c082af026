"""A budget of tokens that is filled with sentences; neighbours, and runs of adjacent sentences."""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.text.token_counts import CountTokens

Blocks = NDArray[np.int64]
"""The block of each sentence, ascending: (n,). Neighbours and merged passages stay inside one block."""


def with_neighbours(
    picks: NDArray[np.int64], context: int, n_sentences: int, blocks: Blocks | None = None
) -> list[int]:
    """Numbers of ``picks`` and of up to ``context`` sentences on each side of each, in document order."""
    context = min(context, n_sentences)
    firsts, stops = np.maximum(picks - context, 0), np.minimum(picks + context + 1, n_sentences)
    if blocks is not None:
        firsts = np.maximum(firsts, np.searchsorted(blocks, blocks[picks], "left"))
        stops = np.minimum(stops, np.searchsorted(blocks, blocks[picks], "right"))
    edges = np.zeros(n_sentences + 1, dtype=np.int64)
    np.add.at(edges, firsts, 1)
    np.subtract.at(edges, stops, 1)
    kept: list[int] = np.flatnonzero(np.cumsum(edges[:-1]) > 0).tolist()
    return kept


def runs(kept: Sequence[int], blocks: Blocks | None = None) -> list[tuple[int, int]]:
    """First and last sentence of each unbroken run in ``kept`` (ascending)."""
    found: list[tuple[int, int]] = []
    for number in kept:
        if found and number == found[-1][1] + 1 and adjoin(number - 1, blocks):
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def adjoin(left: int, blocks: Blocks | None) -> bool:
    """True if sentence ``left`` and the next one are in one block."""
    return blocks is None or bool(blocks[left] == blocks[left + 1])


class TokenBudget:
    """Fills a budget of tokens: the best sentences first, then their neighbours; what does not fit is skipped.

    With most tokenizers a joined text is not exactly the sum of its sentences' tokens, so `shrink` measures at the
    end.
    """

    def __init__(
        self,
        text: str,
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        max_tokens: int,
        count: CountTokens,
        blocks: Blocks | None = None,
    ) -> None:
        self.text, self.blocks, self.max_tokens, self.count = text, blocks, max_tokens, count
        self.starts: list[int] = starts.tolist()
        self.ends: list[int] = ends.tolist()
        self.line_break = line_break = count("\n")
        self.used = 0  # tokens of the kept sentences, each with a line break
        self.extra = 0  # tokens of the white space between adjacent kept sentences, beyond the line breaks
        self.costs: dict[int, int] = {}  # kept sentence -> its tokens, in the order they were taken
        # tokens of the white space between two sentences, beyond the line break already counted
        self._gap_cost = cache(lambda gap: 0 if gap == "\n" else count(gap) - line_break)

    def fill(self, picks: Sequence[int], context: int) -> None:
        """Take what fits of ``picks`` (best first), then of their neighbours, nearest first."""
        for number in picks:
            if self.used >= self.max_tokens:
                break
            self._take(number)
        if context:
            before = _NextFree(len(self.starts), step=-1, taken=self.costs)
            after = _NextFree(len(self.starts), step=1, taken=self.costs)
            for number in tuple(self.costs):
                if self.used >= self.max_tokens:
                    break
                self._take_neighbours(number, context, before, after)

    def shrink(self, measure: Callable[[list[int]], int]) -> list[int]:
        """Drop the sentences taken last until ``measure(kept)`` tokens fit; return the kept numbers, ascending."""
        order = list(self.costs)
        while order:
            kept = sorted(order)
            over = measure(kept) - self.max_tokens
            if over <= 0:
                return kept
            half = len(order) // 2  # drop at most half on an estimate, then measure again
            while len(order) > half and over > 0:
                over -= max(self.costs[order.pop()], 1)
        return []

    def _take(self, number: int) -> bool:
        sentence = self.text[self.starts[number] : self.ends[number]]
        cost = self.count(sentence + "\n")
        extra = self.extra + sum(
            self._gap_cost(self.text[self.ends[left] : self.starts[left + 1]])
            for left in (number - 1, number)
            if {left, left + 1} - {number} <= self.costs.keys() and adjoin(left, self.blocks)
        )
        others = self.used + max(0, extra)
        over = others + cost - self.max_tokens
        if over > 0 and (over > self.line_break or others + self.count(sentence) > self.max_tokens):
            return False  # it would not fit even as the last sentence, without a line break
        self.used += cost
        self.extra = extra
        self.costs[number] = cost
        return True

    def _take_neighbours(self, number: int, context: int, before: "_NextFree", after: "_NextFree") -> None:
        open_sides = [before, after]
        while open_sides:
            reach = [
                (abs(found - number), side, found)
                for side in open_sides
                if (found := side(number)) >= 0
                and abs(found - number) <= context
                and (self.blocks is None or self.blocks[number] == self.blocks[found])
            ]
            if not reach:
                return
            _, nearest, found = min(reach, key=lambda side: side[0])  # if equally near, the one before
            open_sides = [side for _, side, _ in reach if side is not nearest or self._take(found)]


class _NextFree:
    """The nearest sentence on one side that is not taken yet, in nearly constant time; -1 at the end."""

    def __init__(self, n_sentences: int, step: int, taken: dict[int, int]) -> None:
        self.n_sentences, self.taken = n_sentences, taken
        self.jumps = list(range(step, n_sentences + step))  # for each sentence, where to look next

    def __call__(self, number: int) -> int:
        passed = [number]
        found = self.jumps[number]
        while 0 <= found < self.n_sentences and found in self.taken:
            passed.append(found)
            found = self.jumps[found]
        for sentence in passed:
            self.jumps[sentence] = found
        return found if 0 <= found < self.n_sentences else -1
