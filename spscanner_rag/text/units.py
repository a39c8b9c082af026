"""Units, the scored pieces of a document, and helpers that cut a text into spans."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import NamedTuple, Protocol

_NOT_SPACE = re.compile(r"\S")
_SURROGATE = re.compile("[\ud800-\udfff]")
# A span that is too long is cut at the first of these that occurs in range.
_BREAKS = (re.compile(r"\n"), re.compile(r"(?<=[.;:!?…。；：！？])\s"), re.compile(r"\s"))  # noqa: RUF001


class Unit(NamedTuple):
    """One scored piece of a document.

    Parameters
    ----------
    start, end : int
        Character span in the caller's text, without white space (``str.isspace``) at either side.
    model_text : str
        What the model reads for this unit. The units' ``model_text``, joined without a separator, is tokenized.
    """

    start: int
    end: int
    model_text: str

    def own_text(self, text: str) -> str:
        """For a scorer that takes units one by one: the headings or header read before it, and the unit's text."""
        return self.model_text.strip() or text[self.start : self.end]


class Segmenter(Protocol):
    """Anything that cuts a text into units, in document order.

    The spans are disjoint and not empty, and every character that is not white space lies in exactly one.
    """

    @property
    def name(self) -> str:
        """The name of this segmenter in a checkpoint's ``config.json``."""
        ...

    def segment(self, text: str) -> list[Unit]:
        """Cut ``text`` into units."""
        ...


def units_of(text: str, spans: Sequence[tuple[int, int]]) -> list[Unit]:
    """Units with given spans, in document order, that together read the whole text.

    Each also reads the white space up to the next one; the first unit also reads what precedes it.
    """
    read_from = [0, *(start for start, _ in spans[1:]), len(text)]
    return [
        Unit(start, end, text[first:stop])
        for (start, end), (first, stop) in zip(spans, pairwise(read_from), strict=False)
    ]


def readable(text: str) -> str:
    """``text`` as the model reads it: every lone surrogate is replaced by U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


def between(starts: Iterator[int], stop: int) -> Iterator[tuple[int, int]]:
    """The span from each start to the next, and from the last to ``stop``."""
    return pairwise(chain(starts, [stop]))


def trimmed(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The span without white space at either side; None if nothing is left."""
    first = _NOT_SPACE.search(text, start, end)
    if first is None:
        return None
    start = first.start()
    return start, start + len(text[start:end].rstrip())


def cut_long(text: str, start: int, end: int, limit: int) -> Iterator[tuple[int, int]]:
    """Cut a trimmed span into trimmed spans of at most ``limit`` characters, of similar length."""
    while end - start > limit:
        pieces = -(-(end - start) // limit)
        target = start - (start - end) // pieces
        cut = _best_cut(text, start, (start + target) // 2, target, start + limit)
        yield start, start + len(text[start:cut].rstrip())
        following = _NOT_SPACE.search(text, cut, end)
        assert following is not None  # the span ends with a character that is not white space
        start = following.start()
    yield start, end


def _best_cut(text: str, start: int, low: int, target: int, high: int) -> int:
    """The best position to cut at between ``low`` and ``high``, near ``target``."""
    for pattern in _BREAKS:
        places = [match.start() for match in pattern.finditer(text, low, high + 1)]
        if places:
            return min(places, key=lambda place: abs(place - target))
    for place in chain(range(target, low, -1), range(target + 1, high + 1)):
        if not _joins(text, start, place):
            return place
    return target


def _joins(text: str, start: int, place: int) -> bool:
    """True if ``text[place]`` belongs to the same written character as ``text[place - 1]``."""
    before, after = text[place - 1], text[place]
    if after < "\u0300":
        return before == "\u200d"
    if "\U0001f1e6" <= after <= "\U0001f1ff":  # flags are pairs, counted from the start of the run
        run = place
        while run > start and "\U0001f1e6" <= text[run - 1] <= "\U0001f1ff":
            run -= 1
        return (place - run) % 2 == 1
    if before == "\u200d" or after in "\u200c\u200d" or "\U0001f3fb" <= after <= "\U0001f3ff":
        return True
    if "\U000e0020" <= after <= "\U000e007f":  # tags of sub-national flags
        return True
    if "\u1160" <= after <= "\u11ff":  # vowels and finals of conjoining Hangul
        return "\u1100" <= before <= "\u11ff" or "\uac00" <= before <= "\ud7a3"
    return unicodedata.category(after)[0] == "M"
