"""The units of a joined text, none of which extends over two blocks."""

from collections.abc import Callable
from itertools import pairwise

from spscanner_rag.retrieval.joined_text import RUN_SEPARATOR, JoinedText
from spscanner_rag.text.units import Unit


def units_of_blocks(
    units_of: Callable[[str], list[Unit]], joined: JoinedText
) -> list[Unit]:
    """Cut each block of a joined text into units.

    The separator after a block is read too, so that no word joins two blocks.

    Parameters
    ----------
    units_of : callable
        Cuts a text, such as `Scorer.units_of`.
    joined : JoinedText
        What is cut.
    """
    if len(joined.blocks) == 1:
        return units_of(joined.text)
    units: list[Unit] = []
    for start, stop in pairwise([*joined.blocks, len(joined.text)]):
        of_block = units_of(joined.text[start:stop])
        if units and of_block and _would_join(units[-1], of_block[0]):
            first = of_block[0]
            separated = RUN_SEPARATOR + first.model_text
            of_block[0] = Unit(first.start, first.end, separated)
        for unit in of_block:
            span = (start + unit.start, start + unit.end)
            units.append(Unit(*span, unit.model_text))
    return units


def _would_join(before: Unit, after: Unit) -> bool:
    """Whether the last word of one unit and the first of the next would be one word.

    `ReferenceSegmenter` trims the white space at both ends.
    """
    ends_apart = before.model_text[-1:].isspace()
    return not (ends_apart or after.model_text[:1].isspace())
