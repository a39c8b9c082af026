"""A token budget that is filled with sentences, and then with their neighbours."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.results.neighbours import Blocks
from spscanner_rag.text.token_counts import CountTokens


class TokenBudget:
    """Fills a budget of tokens: the best sentences first, then their neighbours.

    What does not fit is skipped. With most tokenizers, a joined text does not have
    exactly as many tokens as its sentences together, so `shrink` measures at the end.

    Parameters
    ----------
    shown : callable
        Returns what is shown of a span of the document.
    starts, ends : array of int, shape (n,)
        Spans of its sentences.
    blocks : array of int, shape (n,)
        Their blocks.
    max_tokens : int
        The budget.
    count : callable
        Counts the tokens of a string.
    """

    def __init__(
        self,
        shown: Callable[[int, int], str],
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        blocks: Blocks,
        max_tokens: int,
        count: CountTokens,
    ) -> None:
        self._shown = shown
        self.starts = starts.tolist()
        self.ends = ends.tolist()
        self.blocks = blocks.tolist()
        self.max_tokens = max_tokens
        self.count = count
        self.line_break = line_break = count("\n")
        # Tokens of the sentences in the budget, each with a line break.
        self.used = 0
        # Tokens of the white space between adjacent ones, beyond the line breaks.
        self.extra = 0
        # Sentence -> its tokens, in the order in which they came into the budget.
        self.costs: dict[int, int] = {}
        # The other sentences.
        self.free = list(range(len(starts)))

        @cache
        def gap_cost(gap: str) -> int:
            """Tokens of white space, beyond the line break that is counted already."""
            return 0 if gap == "\n" else count(gap) - line_break

        self._gap_cost = gap_cost

    def fill(self, picks: Sequence[int], context: int) -> None:
        """Add what fits of ``picks``, best first, then of their neighbours.

        The nearest neighbours come first.
        """
        for number in picks:
            if self.used >= self.max_tokens:
                break
            self._add(number)
        if not context:
            return
        for number in tuple(self.costs):
            if self.used >= self.max_tokens:
                break
            self._add_neighbours(number, context)

    def shrink(self, measure: Callable[[list[int]], int]) -> list[int]:
        """Drop the sentences added last until ``measure(sentences)`` tokens fit.

        Returns the indices of the others, ascending.
        """
        order = list(self.costs)
        while order:
            sentences = sorted(order)
            surplus = measure(sentences) - self.max_tokens
            if surplus <= 0:
                return sentences
            # Drop at most half on an estimate, then measure again.
            half = len(order) // 2
            while len(order) > half and surplus > 0:
                surplus -= max(self.costs[order.pop()], 1)
        return []

    def _add(self, number: int) -> bool:
        """Add a sentence if it fits, and return whether it did."""
        sentence = self._shown(self.starts[number], self.ends[number])
        cost = self.count(sentence + "\n")
        extra = self.extra
        if self._is_in_budget(number - 1, number):
            extra += self._cost_between(number - 1)
        if self._is_in_budget(number + 1, number):
            extra += self._cost_between(number)
        used_by_others = self.used + max(0, extra)
        surplus = used_by_others + cost - self.max_tokens
        if surplus > self.line_break:
            return False
        # As the last sentence, it has no line break after it.
        if surplus > 0 and used_by_others + self.count(sentence) > self.max_tokens:
            return False
        self.used += cost
        self.extra = extra
        self.costs[number] = cost
        del self.free[bisect_left(self.free, number)]
        return True

    def _is_in_budget(self, other: int, number: int) -> bool:
        """True if a neighbour is in the budget, and in the same block."""
        return other in self.costs and self.blocks[other] == self.blocks[number]

    def _cost_between(self, left: int) -> int:
        """Tokens of the white space after a sentence, beyond the line break."""
        return self._gap_cost(self._shown(self.ends[left], self.starts[left + 1]))

    def _add_neighbours(self, number: int, context: int) -> None:
        """Add the nearest free sentence again and again.

        It ends when none on either side connects, is near enough and fits.
        """
        sides = [-1, 0]  # before and after the place of ``number`` among the free ones
        while sides:
            place = bisect_left(self.free, number)
            candidates = []
            for side in sides:
                if not 0 <= place + side < len(self.free):
                    continue
                neighbour = self.free[place + side]
                distance = abs(neighbour - number)
                same_block = self.blocks[neighbour] == self.blocks[number]
                if distance <= context and same_block:
                    candidates.append((distance, side, neighbour))
            if not candidates:
                return
            # If two are equally near, the one before.
            _, nearest_side, neighbour = min(candidates)
            fits = self._add(neighbour)
            sides = []
            for _, side, _ in candidates:
                if fits or side != nearest_side:
                    sides.append(side)
