"""Rectangles of a span on the pages of a PDF, from those of its words, which frameworks' metadata hold packed."""

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
    found: list[Box] = []
    for at, _, *corners in words.tolist():
        box = Box(page_of(at), *(corner / 10 for corner in corners))
        if found and _on_one_line(found[-1], box, upright=width >= height):
            one = found.pop()
            box = Box(
                box.page, *map(min, one[1:3], box[1:3]), *map(max, one[3:], box[3:])
            )
        if box.x0 < box.x1 and box.y0 < box.y1:
            found.append(box)
    return tuple(found)


@lru_cache(maxsize=64)
def unpacked(text: str) -> tuple[int, Words] | None:
    """A page and its words, as `files.documents.packed` writes them.

    None for another or a truncated string.
    """
    page, _, data = text.partition(":")
    try:
        raw = zlib.decompressobj().decompress(
            b64decode(data, validate=True), _MOST_BYTES
        )
        steps = np.frombuffer(raw, "<i4").reshape(_COLUMNS, -1)
        return int(page), steps.T.cumsum(axis=0, dtype=np.int32)
    except (ValueError, binascii.Error, zlib.error):
        return None


def _on_one_line(left: Box, right: Box, *, upright: bool) -> bool:
    """True if the second word is on the line of the first.

    Lines of rotated letters run up or down.
    """
    if upright:
        inside = left.y0 < (right.y0 + right.y1) / 2 < left.y1 and right.x1 > left.x0
    else:
        inside = left.x0 < (right.x0 + right.x1) / 2 < left.x1
    return left.page == right.page and inside
