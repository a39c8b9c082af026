"""Rectangles of a span on the pages of a PDF, from those of its words.

The metadata of frameworks' documents hold the words packed.
"""

import binascii
import zlib
from base64 import b64decode
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.int32]
"""Start and end of each word, and left, bottom, right and top in tenths of a point:
(n, 6)."""

WORDS_KEY = "spscanner_words"
"""Key of packed words in the metadata of a framework's document."""

_MOST_BYTES = 2**24  # maximum size of the unpacked words of a page
_COLUMNS = 6


class Box(NamedTuple):
    """A rectangle on a page, in points from the lower left corner of a PDF's page."""

    page: int  # from 1
    x0: float
    y0: float
    x1: float
    y1: float


def boxes_of(
    words: Words, start: int, end: int, page_of: Callable[[int], int]
) -> tuple[Box, ...]:
    """A rectangle for each line of a span.

    ``page_of`` returns the page of a word from its start.
    """
    first = int(np.searchsorted(words[:, 1], start, side="right"))
    last = int(np.searchsorted(words[:, 0], end, side="left"))
    words = words[first:last]
    width, height = (words[:, 4:] - words[:, 2:4]).sum(axis=0)
    boxes: list[Box] = []
    for word_start, _, *corners in words.tolist():
        box = Box(page_of(word_start), *(corner / 10 for corner in corners))
        if boxes and _on_one_line(boxes[-1], box, upright=width >= height):
            box = _around(boxes.pop(), box)
        if box.x0 < box.x1 and box.y0 < box.y1:
            boxes.append(box)
    return tuple(boxes)


def _around(left: Box, right: Box) -> Box:
    """The smallest rectangle that holds both."""
    return Box(
        right.page,
        min(left.x0, right.x0),
        min(left.y0, right.y0),
        max(left.x1, right.x1),
        max(left.y1, right.y1),
    )


@lru_cache(maxsize=64)
def unpacked(text: str) -> tuple[int, Words] | None:
    """A page and its words, from a string that the readers of files wrote.

    None for another or a truncated string.
    """
    page, _, data = text.partition(":")
    try:
        compressed = b64decode(data, validate=True)
        raw = zlib.decompressobj().decompress(compressed, _MOST_BYTES)
        steps = np.frombuffer(raw, "<i4").reshape(_COLUMNS, -1)
        return int(page), steps.T.cumsum(axis=0, dtype=np.int32)
    except (ValueError, binascii.Error, zlib.error):
        return None


def _on_one_line(left: Box, right: Box, *, upright: bool) -> bool:
    """True if the second word is on the line of the first.

    Lines of rotated letters run up or down.
    """
    if left.page != right.page:
        return False
    if upright:
        middle = (right.y0 + right.y1) / 2
        return left.y0 < middle < left.y1 and right.x1 > left.x0
    return left.x0 < (right.x0 + right.x1) / 2 < left.x1
