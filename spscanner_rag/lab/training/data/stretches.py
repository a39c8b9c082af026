"""Examples that a model is trained on: a question with a stretch of one document, or with stretches of several."""

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.mamba2.reader import TokenSequence
from spscanner_rag.scan.prepare import QueryOnText


@dataclass(frozen=True, slots=True)
class Example:
    """One training sequence, or a group: the sequences of ``others`` have its question and are ranked with it."""

    sequence: TokenSequence
    relevant: NDArray[np.bool_]  # (units,)
    others: tuple["Example", ...] = ()

    @property
    def stretches(self) -> tuple["Example", ...]:
        """All sequences of the group, this one first."""
        return (self, *self.others)


@dataclass(frozen=True, slots=True)
class Labelled:
    """A question on a document whose sentences are labelled, to be cut into examples."""

    asked: QueryOnText
    relevant: NDArray[np.bool_]  # (units,)

    def cut(self, first: int, last: int) -> Example:
        """The units ``first`` to ``last``, inclusive."""
        inside = slice(first, last + 1)
        return Example(self.asked.sequence(first, last), self.relevant[inside])


Cut = Callable[[NDArray[np.int64], int, int, random.Random], tuple[int, int]]
"""Chooses a stretch: the arguments and the result of `full_stretch`."""

LEAST_STRETCH_SHARE = 0.5
"""Share of the room in a sequence that a stretch fills at least, if the document is long enough."""


def full_stretch(
    unit_ends: NDArray[np.int64], centre: int, room: int, draw: random.Random
) -> tuple[int, int]:
    """First and last unit of a stretch around unit ``centre``: ``room`` tokens, or a shorter document whole.

    The unit is anywhere in the stretch if the document is long enough on both sides. A unit near the document's
    start or end is usually as near to that of the stretch. ``unit_ends``, (units,), has the last token of each.
    """
    total, before = int(unit_ends[-1]) + 1, _tokens_before(unit_ends, centre)
    begin = min(max(0, before - draw.randrange(room)), max(0, total - room))
    return _units_within(unit_ends, centre, begin, room)


def spread_stretch(
    unit_ends: NDArray[np.int64], centre: int, room: int, draw: random.Random
) -> tuple[int, int]:
    """As `full_stretch`, but a unit near the document's start or end may be anywhere in the stretch, too.

    For that the stretch is cut shorter on the other side, down to `LEAST_STRETCH_SHARE`.
    """
    total, before = int(unit_ends[-1]) + 1, _tokens_before(unit_ends, centre)
    after, room = total - before, min(room, total)
    least = LEAST_STRETCH_SHARE * room
    # the share of the stretch before the unit
    share = draw.uniform(max(0.0, 1 - after / least), min(1.0, before / least))
    tokens = float(room)
    if before < share * room:
        tokens = min(tokens, before / share)
    if after < (1 - share) * room:
        tokens = min(tokens, after / (1 - share))
    begin = min(max(0, before - round(share * tokens)), max(0, total - round(tokens)))
    return _units_within(unit_ends, centre, begin, tokens)


def trimmed(unit_ends: NDArray[np.int64], first: int, last: int, centre: int, room: int) -> tuple[int, int]:
    """The stretch without the outermost units that make it longer than ``room`` tokens; ``centre`` stays."""
    while tokens_of(unit_ends, first, last) > room and first < last:
        if first < centre:
            first += 1
        else:
            last -= 1
    return first, last


def tokens_of(unit_ends: NDArray[np.int64], first: int, last: int) -> int:
    """Tokens of the units ``first`` to ``last``, inclusive, with one that the first shares with another unit."""
    begin = min(_tokens_before(unit_ends, first), int(unit_ends[first]))
    return int(unit_ends[last]) + 1 - begin


def room_for(question_tokens: int, length: int, reanchor_tokens: int | None) -> int:
    """Document tokens that fit into a sequence together with the question and its repeats."""
    repeats = question_tokens / reanchor_tokens if reanchor_tokens else 0
    return int((length - question_tokens) / (1 + repeats))


def _tokens_before(unit_ends: NDArray[np.int64], unit: int) -> int:
    return int(unit_ends[unit - 1]) + 1 if unit else 0


def _units_within(unit_ends: NDArray[np.int64], centre: int, begin: int, tokens: float) -> tuple[int, int]:
    """First and last unit between two tokens, ``centre`` always among them."""
    first = int(np.searchsorted(unit_ends, begin))
    last = int(np.searchsorted(unit_ends, begin + tokens, side="right")) - 1
    return min(first, centre), max(min(last, len(unit_ends) - 1), centre)
