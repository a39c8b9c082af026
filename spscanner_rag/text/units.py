"""Units, the scored pieces of a document, and helpers that cut a text into spans."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import NamedTuple, Protocol

_NOT_SPACE = re.compile(r"\S")
_SURROGATE = re.compile("[\ud800-\udfff]")
# A span that is too long is cut at the first of these that occurs in range.
_BREAKS = (
    re.compile(r"\n"),
    re.compile(r"(?<=[.;:!?…。；：！？])\s"),  # noqa: RUF001
    re.compile(r"\s"),
)


class Unit(NamedTuple):
    """One scored piece of a document.

    Parameters
    ----------
    start, end : int
        Character span in the caller's text, without white space (``str.isspace``) at
        either side.
    model_text : str
        What the model reads for this unit. The units' ``model_text``, joined without a
        separator, is tokenized.
    """

    start: int
    end: int
    model_text: str

    def own_text(self, text: str) -> str:
        """The unit's text and the headings or header before it, for a scorer that takes units one by one."""
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


def units_of(text: str, spans: Sequence[tuple[int, int]]) -> list[Unit]:
    """Units with given spans, in document order, that together read the whole text.

    Each also reads the white space up to the next one; the first unit also reads what
    precedes it.
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
        assert (
            following is not None
        )  # the span ends with a character that is not white space
        start = following.start()
    yield start, end


def _best_cut(text: str, start: int, low: int, target: int, high: int) -> int:
    """The best position to cut at between ``low`` and ``high``, near ``target``."""
    for pattern in _BREAKS:
        places = [match.start() for match in pattern.finditer(text, low, high + 1)]
        if places:
            return min(places, key=lambda place: abs(place - target))
    import regex  # only here, since few texts have such spans

    # Characters as they are shown, such as a flag; in a part, since regex pairs flags
    # from the text's beginning.
    written = regex.finditer(r"\X", text[start : high + 1])
    places = [start + match.start() for match in written if start + match.start() > low]
    before = [place for place in places if place <= target]
    return (before[-1:] + places + [target])[0]
