"""Draws pages of a PDF with the rectangles of passages."""

import base64
import math
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from ctypes import byref, c_int
from typing import Any, NamedTuple

from spscanner_rag.files.apart import Record, read_apart
from spscanner_rag.files.readers.pdf import opened
from spscanner_rag.text.word_boxes import Box

MOST_PAGES = 10
MOST_PIXELS = 1_600_000
"""Most pixels of a page: a sheet of A4 at 130 dots per inch."""

MOST_BYTES = 8 * 2**20
"""Most bytes of all pictures, in base64.

A page over an eighth of it is drawn at half size, or else left out.
"""

SECONDS = 10.0
_LARGEST_SCALE = 1.8  # pixels per point
_LONGEST = 8_000  # most pixels of a side
_GREY = 0  # color types of PNG
_COLORED = 2


class Picture(NamedTuple):
    """A page, and its rectangles of passages.

    A rectangle is the passage's number, then left, top, width and height in pixels.
    """

    number: int  # of the page, counted from 1
    width: int
    height: int
    png: str  # in base64
    places: Sequence[tuple[int, int, int, int, int]]


def pictures_of(
    data: bytes,
    passages: Sequence[Sequence[Box]],
    check: Callable[[], None] | None = None,
) -> list[Picture]:
    """Draw the pages of the first passages that have boxes, in page order.

    Some or all pages may be missing.

    ``check`` is called meanwhile, and may raise an exception to stop drawing.
    """
    boxes_by_page: dict[int, list[tuple[float, ...]]] = {}
    for number, boxes in enumerate(passages):
        for page, *corners in boxes:
            boxes_by_page.setdefault(page, []).append((number, *corners))
    pages = list(boxes_by_page.items())[:MOST_PAGES]
    if not pages:
        return []
    pictures = []
    total_bytes = 0
    for record in read_apart(_drawn, data, SECONDS, check, *pages):
        total_bytes += len(record["png"])
        if total_bytes <= MOST_BYTES:
            pictures.append(Picture(**record))
    return sorted(pictures, key=lambda picture: picture.number)


def _drawn(
    data: bytes, *pages: tuple[int, Sequence[Sequence[float]]]
) -> Iterator[Record]:
    """Yield a record for each page that can be drawn."""
    document = opened(data)
    if isinstance(document, dict):
        return
    document.init_forms()
    for number, boxes in pages:
        for share in (1.0, 0.5):
            try:
                picture = _picture(document[number - 1], boxes, share)
            except Exception:  # a broken page; MemoryError too
                break
            if len(picture["png"]) <= MOST_BYTES // 8:
                yield {"number": number, **picture}
                break


def _picture(
    page: Any,  # noqa: ANN401 - of pypdfium2
    boxes: Sequence[Sequence[float]],
    share: float,
) -> dict[str, Any]:
    """Draw a page at a share of the usual scale."""
    page_width, page_height = page.get_size()
    scale = share * min(
        _LARGEST_SCALE,
        math.sqrt(MOST_PIXELS / (page_width * page_height)),
        _LONGEST / max(page_width, page_height),
    )
    bitmap = page.render(scale=scale, rev_byteorder=True)
    width = bitmap.width
    height = bitmap.height
    rectangles = []
    for passage, *corners in boxes:
        x0, y0 = _pixel(page, width, height, *corners[:2])
        x1, y1 = _pixel(page, width, height, *corners[2:])
        size = (abs(x1 - x0), abs(y1 - y0))
        rectangles.append((passage, min(x0, x1), min(y0, y1), *size))
    return {
        "width": width,
        "height": height,
        "png": _png(bitmap),
        "places": rectangles,
    }


def _pixel(
    page: Any,  # noqa: ANN401 - of pypdfium2
    width: int,
    height: int,
    x: float,
    y: float,
) -> tuple[int, int]:
    """Where a point of a page, which may be rotated or cropped, is on its picture."""
    from pypdfium2 import raw

    left = c_int()
    top = c_int()
    raw.FPDF_PageToDevice(page, 0, 0, width, height, 0, x, y, byref(left), byref(top))
    return left.value, top.value


def _png(bitmap: Any) -> str:  # noqa: ANN401 - of pypdfium2
    """An RGB bitmap as a PNG in base64.

    Most pages have no colours, and are written in grey, a third as large.
    """
    pixels = bytes(bitmap.buffer)
    width = bitmap.width
    height = bitmap.height
    stride = bitmap.stride
    rows = [pixels[at : at + 3 * width] for at in range(0, height * stride, stride)]
    color_type = _COLORED
    if all(row[::3] == row[1::3] == row[2::3] for row in rows):
        color_type = _GREY
        rows = [row[::3] for row in rows]
    lines = b"".join(b"\0" + row for row in rows)
    png = b"\x89PNG\r\n\x1a\n"
    png += _chunk(
        b"IHDR", struct.pack(">IIBBBBB", width, height, 8, color_type, 0, 0, 0)
    )
    png += _chunk(b"IDAT", zlib.compress(lines, 3))
    png += _chunk(b"IEND", b"")
    return base64.b64encode(png).decode()


def _chunk(name: bytes, body: bytes) -> bytes:
    """A part of a PNG file, with its length and checksum."""
    checksum = struct.pack(">I", zlib.crc32(name + body))
    return struct.pack(">I", len(body)) + name + body + checksum
