"""A text without its markup, and where each character of it is in the text."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from spscanner_rag.text.blocks import Block


class VisibleText:
    """A text in which every block of markup is replaced by what is shown instead.

    Parameters
    ----------
    text : str
        The text with its markup.
    markup : sequence of Block
        Blocks of the kind "markup", in order and disjoint. Their titles are what is
        shown in their places.

    Examples
    --------
    >>> tags = [Block(2, 5, "markup"), Block(6, 10, "markup")]
    >>> visible = VisibleText("a <b>b</b> c", tags)
    >>> visible.text
    'a b c'
    >>> visible.original_span(2, 3)
    (5, 6)
    """

    def __init__(self, text: str, markup: Sequence[Block]) -> None:
        parts: list[str] = []
        # Starts of the parts, here and in the text with markup.
        self._starts: list[int] = []
        self._original_starts: list[int] = []
        self._is_shown_instead: list[bool] = []
        length = 0
        for part, original_start, instead in _parts(text, markup):
            parts.append(part)
            self._starts.append(length)
            self._original_starts.append(original_start)
            self._is_shown_instead.append(instead)
            length += len(part)
        self.text = "".join(parts)

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """Where a span that is not empty is in the text with markup."""
        return self._original(start), self._original(end - 1) + 1

    def blocks(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Blocks of the text with markup where they are without it.

        Those with nothing to show are left out.
        """
        for block in blocks:
            start = self._offset(block.start)
            end = self._offset(block.end)
            header = block.header
            if header is not None:
                header = (self._offset(header[0]), self._offset(header[1]))
            if start < end:
                yield block._replace(start=start, end=end, header=header)

    def _original(self, offset: int) -> int:
        part = bisect_right(self._starts, offset) - 1
        if self._is_shown_instead[part]:
            return self._original_starts[part]
        return self._original_starts[part] + offset - self._starts[part]

    def _offset(self, original: int) -> int:
        """Where a place of the text with markup is without it."""
        part = bisect_right(self._original_starts, original) - 1
        if part < 0:
            return 0
        start = self._starts[part]
        stop = len(self.text)
        if part + 1 < len(self._starts):
            stop = self._starts[part + 1]
        if self._is_shown_instead[part]:
            return start if original == self._original_starts[part] else stop
        return min(start + original - self._original_starts[part], stop)


def shown(text: str, start: int, end: int, markup: Sequence[Block]) -> str:
    """What is shown of a span of a text with blocks of markup, in order.

    Examples
    --------
    >>> shown("a <b>b</b> c", 2, 10, [Block(2, 5, "markup"), Block(6, 10, "markup")])
    'b'
    """
    first = bisect_right(markup, start, key=lambda block: block.end)
    parts = []
    position = start
    for block in islice(markup, first, None):
        if block.start >= end:
            break
        parts += [text[position : block.start], block.title]
        position = block.end
    return "".join([*parts, text[position:end]])


def _parts(text: str, markup: Sequence[Block]) -> Iterator[tuple[str, int, bool]]:
    """The parts of what is shown that are not empty.

    Each comes with its place in the text, and whether it stands for markup.
    """
    position = 0
    for block in markup:
        if position < block.start:
            yield text[position : block.start], position, False
        if block.title:
            yield block.title, block.start, True
        position = block.end
    if position < len(text):
        yield text[position:], position, False
