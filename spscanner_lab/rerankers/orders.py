"""Three ways to put passages in order with a language model.

Each changes a list of passage numbers, best first. A prompt without a usable reply
leaves the list as it is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spscanner_lab.rerankers.passage_prompts import (
    choosing_prompt,
    passages_in,
    ranking_prompt,
)

WINDOW = 20  # passages in a prompt of the listwise order
STEP = 10  # how far its window moves
SET_SIZE = 4  # passages in a prompt of the setwise order
TOP = 10  # passages that the pairwise and the setwise order bring to the front


@dataclass(frozen=True, slots=True)
class Comparison:
    """Asks which of the passages are relevant to a query.

    Attributes
    ----------
    query : str
        The query.
    passages : sequence of str
        The passages, which lists of numbers refer to.
    ask : callable
        Sends a prompt, and returns the reply, or None if the model failed.
    """

    query: str
    passages: Sequence[str]
    ask: Callable[[str], str | None]

    def ranked(self, numbers: Sequence[int]) -> list[int]:
        """Return passages in the order of the reply.

        Those that it leaves out follow in the order in which they were.
        """
        named = self._named(ranking_prompt, numbers)
        return list(dict.fromkeys([*named, *numbers]))

    def best(self, numbers: Sequence[int]) -> int | None:
        """Return the passage that the reply names, or None."""
        named = self._named(choosing_prompt, numbers)
        return named[0] if named else None

    def _named(
        self, prompt_of: Callable[[str, Sequence[str]], str], numbers: Sequence[int]
    ) -> list[int]:
        """Return the passages that a reply names, in its order."""
        passages = [self.passages[number] for number in numbers]
        reply = self.ask(prompt_of(self.query, passages))
        if reply is None:
            return []
        return [numbers[place] for place in passages_in(reply, len(numbers))]


def listwise(order: list[int], comparison: Comparison) -> None:
    """Rank windows of passages, as RankGPT does (Sun et al., 2023).

    Windows of 20 move from the back to the front in steps of 10, so that the ten best
    of all can come first.
    """
    end = len(order)
    start = max(0, end - WINDOW)
    while end - start > 1:
        order[start:end] = comparison.ranked(order[start:end])
        if start == 0:
            return
        end -= STEP
        start = max(0, end - WINDOW)


def pairwise(order: list[int], comparison: Comparison) -> None:
    """Compare neighbours, as PRP-Sliding-K does (Qin et al., 2023).

    Each pass goes from the back to the front. Each pair is asked in both orders, and
    swapped if both replies agree.
    """
    for front in range(min(TOP, len(order) - 1)):
        for place in range(len(order) - 2, front - 1, -1):
            pair = order[place : place + 2]
            better, worse = reversed(pair)
            if comparison.best(pair) == comparison.best([better, worse]) == better:
                order[place : place + 2] = [better, worse]


def setwise(order: list[int], comparison: Comparison) -> None:
    """Choose the best of sets of four (Zhuang et al., 2023, with bubble sort).

    In each pass, the best of a set moves to its front, and so into the next set.
    """
    for front in range(min(TOP, len(order) - 1)):
        end = len(order)
        while end - front > 1:
            start = max(front, end - SET_SIZE)
            numbers = order[start:end]
            best = comparison.best(numbers)
            if best is not None:
                order[start:end] = dict.fromkeys([best, *numbers])
            end = start + 1


ORDERS: dict[str, Callable[[list[int], Comparison], None]] = {
    "listwise": listwise,
    "pairwise": pairwise,
    "setwise": setwise,
}
"""The orders by name."""
