"""Select sentences by number: ranking, top k, threshold, token budget and neighbours."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cache
from typing import Any, Literal, Self, TypeGuard, get_args

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.text.token_counts import CountTokens, check_counter

Order = Literal["document", "score"]
Blocks = NDArray[np.int64]
"""The block of each sentence, ascending: (n,). Neighbours and merged passages stay inside one block."""

# If ``top_k`` is a share of the sentences, at least this many are kept, as in the original.
MINIMUM_OF_A_SHARE = 10

ELBOW_BOUNDS = (1, 50)
"""The fewest and the most sentences of ``top_k="elbow"``, where it names no others."""

_ELBOW = re.compile(r"elbow(?::([1-9]\d{0,8})-([1-9]\d{0,8}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which sentences are selected: the arguments of `ScanResult.select`, checked.

    Where sentences are selected from several texts together, ``top_k`` and ``max_tokens`` hold for all of them,
    and ``top_k_per_text`` is the most that are taken of each, without neighbours.

    Raises
    ------
    ValueError
        For the first argument that is out of its range; the message begins with its name.
    """

    top_k: float | str | None = 50
    threshold: float | None = None
    max_tokens: int | None = None
    count_tokens: CountTokens | str | None = None
    context: int = 0
    order: Order = "document"
    merge: bool = False
    diversity: float = 1.0
    top_k_per_text: int | None = None

    def __post_init__(self) -> None:
        _check_top_k(self.top_k)
        if self.threshold is not None and not (_is_number(self.threshold) and 0 <= self.threshold <= 1):
            raise ValueError(
                f"threshold: got {self.threshold!r}; expected a score from 0 to 1, or None: "
                "a score is the sigmoid of a logit, so 0.5 stands for logit 0"
            )
        _check_count("max_tokens", self.max_tokens, "budget")
        check_counter(self.count_tokens)
        if not is_integer(self.context) or self.context < 0:
            raise ValueError(
                f"context: got {self.context!r}; expected the number of neighbours on each side, an integer of at "
                "least 0"
            )
        if not isinstance(self.order, str) or self.order not in get_args(Order):
            raise ValueError(f'order: got {self.order!r}; expected "document" or "score" (best first)')
        if not isinstance(self.merge, bool | np.bool_):
            raise ValueError(f"merge: got {self.merge!r}; expected True or False")
        if not (_is_number(self.diversity) and 0 <= self.diversity <= 1):
            raise ValueError(
                f"diversity: got {self.diversity!r}; expected a number from 0 to 1; 1 ignores whether sentences "
                "repeat each other"
            )
        _check_count("top_k_per_text", self.top_k_per_text, "limit")

    @classmethod
    def of(cls, options: Mapping[str, Any], names: Mapping[str, str]) -> Self:
        """Read every field from ``options``, where ``names`` maps a field to the option's name if they differ.

        The message of an error begins with the option's name.
        """
        try:
            return cls(**{own.name: options[names.get(own.name, own.name)] for own in fields(cls)})
        except ValueError as error:
            field, colon, rest = str(error).partition(":")
            raise ValueError(f"{names.get(field, field)}{colon}{rest}") from None

    def pick(self, logits: NDArray[np.float32], scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """Numbers of the sentences within ``top_k`` and at or above ``threshold``, best first."""
        ranked = rank(logits)
        picks = ranked[: resolve_top_k(self.top_k, len(logits), scores[ranked])]
        return picks if self.threshold is None else picks[scores[picks] >= self.threshold]


def _check_top_k(top_k: object) -> None:
    share = _is_number(top_k) and 0 < top_k < 1
    elbow = isinstance(top_k, str) and elbow_bounds(top_k)
    if not (top_k is None or share or elbow or (is_integer(top_k) and top_k >= 1)):
        raise ValueError(
            f"top_k: got {top_k!r}; expected an integer of at least 1, a share of the sentences between 0 and 1 "
            '(both excluded), "elbow" or "elbow:5-30", or None for all'
        )


def _check_count(name: str, value: object, what: str) -> None:
    if value is not None and not (is_integer(value) and value >= 1):
        raise ValueError(f"{name}: got {value!r}; expected an integer of at least 1, or None for no {what}")


def sigmoid(logits: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Score of each logit, ``1 / (1 + exp(-logit))`` in float64, without overflow at either end."""
    values = logits.astype(np.float64)
    tail = np.exp(-np.abs(values))
    return np.asarray(np.where(values >= 0, 1.0, tail) / (1.0 + tail), dtype=np.float64)


def rank(logits: NDArray[np.float32]) -> NDArray[np.int64]:
    """Sentence numbers from the highest logit to the lowest; among equal ones the earlier sentence first."""
    return np.argsort(-logits, kind="stable").astype(np.int64)


def is_integer(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number of Python or numpy, and not a bool."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_number(value: object) -> TypeGuard[float]:
    return is_integer(value) or isinstance(value, float | np.floating)


def elbow_bounds(top_k: str) -> tuple[int, int] | None:
    """The bounds of ``"elbow"`` or ``"elbow:5-30"``; None for any other string."""
    match = _ELBOW.fullmatch(top_k)
    if match is None:
        return None
    least, most = (int(match[1]), int(match[2])) if match[1] else ELBOW_BOUNDS
    return (least, most) if least <= most else None


def elbow(ranked_scores: NDArray[np.float64], least: int, most: int) -> int:
    """How many of the best sentences stand above the steepest fall of the scores.

    Parameters
    ----------
    ranked_scores : (n,)
        From the highest to the lowest.
    least, most : int
        Bounds of the result, which is n where there are fewer sentences.

    Returns
    -------
    int
        The k from ``least`` to ``most`` with the largest difference between the scores at ranks k and k + 1; the
        smallest of several.
    """
    falls = -np.diff(ranked_scores)[least - 1 : most]
    return least + int(np.argmax(falls)) if len(falls) else min(most, len(ranked_scores))


def resolve_top_k(
    top_k: float | str | None, n_sentences: int, ranked_scores: NDArray[np.float64] | None = None
) -> int:
    """How many sentences ``top_k`` allows; ``ranked_scores`` are needed for an elbow, see `elbow`.

    A share below 1 is rounded up, and allows at least 10 sentences. It is read as the decimal number that the
    caller wrote: 0.07 of 100 sentences are 7, although the float 0.07 times 100 is a little more.
    """
    if top_k is None:
        return n_sentences
    if isinstance(top_k, str):
        bounds = elbow_bounds(top_k)
        if bounds is None or ranked_scores is None:
            raise ValueError(
                f"top_k: got {top_k!r} for {n_sentences} sentences; expected a number, or scores too"
            )
        return elbow(ranked_scores, *bounds)
    if top_k >= 1:
        return min(int(top_k), n_sentences)
    share = math.ceil(Fraction(repr(float(top_k))) * n_sentences)
    return min(max(share, MINIMUM_OF_A_SHARE), n_sentences)


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
    """Whether sentence ``left`` and the one after it stand in one block."""
    return blocks is None or bool(blocks[left] == blocks[left + 1])


class TokenBudget:
    """Fills a budget of tokens: the best sentences first, then their neighbours.

    A sentence that does not fit is skipped and the next one is tried; each is counted once or twice. The budget
    must hold the longer of two forms of the text: one sentence per line, or adjacent sentences with the document's
    white space between them. With most tokenizers the tokens of a joined text are not exactly the sum of its
    sentences' tokens, so `shrink` then measures what the caller gets.
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
        """Take what fits of ``picks`` (best first), then of their neighbours, those of the best sentence first.

        The nearest neighbours are taken first, the one before ahead of the one after. A side ends at the first
        neighbour that does not fit, so that neighbours always connect to their sentence.
        """
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
            _, nearest, found = min(
                reach, key=lambda candidate: candidate[0]
            )  # if equally near, the one before
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
