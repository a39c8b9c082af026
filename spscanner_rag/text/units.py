"""Units, the spans of a text that get one score each, and what cuts a text into them.

In the paper (the Single-Pass Scanner, COLM 2025) a unit is a sentence: the reader reads
the whole text once, and the logit of a sentence sits on its last token.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol


class Unit(NamedTuple):
    r"""A span of a text that gets one score, with what the model reads of it.

    Parameters
    ----------
    start, end : int
        Character span in the caller's text, without white space (``str.isspace``) at
        either side.
    model_text : str
        What the model reads for this unit. The units' ``model_text``, joined without a
        separator, is tokenized.

    Examples
    --------
    >>> text = "# Harbour\n\nShips leave at noon. "
    >>> unit = Unit(11, 31, text)
    >>> text[unit.start : unit.end]
    'Ships leave at noon.'
    >>> unit.text_with_headings(text)
    '# Harbour\n\nShips leave at noon.'
    """

    start: int
    end: int
    model_text: str

    def text_with_headings(self, text: str) -> str:
        """The unit's text, and the headings or header that are read before it.

        This is for a scorer that takes units one by one.
        """
        return self.model_text.strip() or text[self.start : self.end]


class Segmenter(Protocol):
    """Anything that cuts a text into units, in document order.

    The spans are disjoint and not empty, and every character that is not white space
    lies in exactly one.
    """

    @property
    def name(self) -> str:
        """The name of this segmenter in a checkpoint's ``config.json``."""
        ...

    def segment(self, text: str) -> list[Unit]:
        """Cut ``text`` into units."""
        ...


def units_from_spans(text: str, spans: Sequence[tuple[int, int]]) -> list[Unit]:
    """Make units of spans, in document order, that together read the whole text.

    Each unit also reads the white space up to the next one, and the first unit also
    what precedes it.

    Examples
    --------
    >>> units_from_spans("One. Two.", [(0, 4), (5, 9)])
    [Unit(start=0, end=4, model_text='One. '), Unit(start=5, end=9, model_text='Two.')]
    """
    if not spans:
        return []
    read_from = [0, *(start for start, _ in spans[1:]), len(text)]
    units = []
    for (start, end), (first, stop) in zip(spans, pairwise(read_from), strict=True):
        units.append(Unit(start, end, text[first:stop]))
    return units
