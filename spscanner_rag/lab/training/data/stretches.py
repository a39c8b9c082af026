"""Examples that a scanner is trained on: a question with a stretch of a document."""

import random
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.mamba2.reader import TokenSequence


@dataclass(frozen=True, slots=True)
class Example:
    """One training sequence, and which of its units are relevant."""

    sequence: TokenSequence
    relevant: NDArray[np.bool_]  # (units,)


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
