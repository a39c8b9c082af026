"""Shows passages on the pages of a PDF: in pictures, and as highlights in a copy."""

import base64
import ctypes
import io
import math
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from ctypes import byref, c_int
from itertools import groupby
from typing import Any, NamedTuple

from spscanner_rag.files.apart import Record, read_apart, seconds_for
from spscanner_rag.files.readers.pdf import opened
from spscanner_rag.system.install_hints import import_extra
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
    placed = [(box, number) for number, boxes in enumerate(passages) for box in boxes]
    pages = list(dict.fromkeys(box.page for box, _ in placed))[:MOST_PAGES]
    if not pages:
        return []
    asked = [
        (page, [(n, *box[1:]) for box, n in placed if box.page == page])
        for page in pages
    ]
    found = []
    size = 0
    for record in read_apart(_drawn, data, SECONDS, check, *asked):
        size += len(record["png"])
        if size <= MOST_BYTES:
            found.append(Picture(**record))
    return sorted(found, key=lambda picture: picture.number)


def _drawn(
    data: bytes, *asked: tuple[int, Sequence[Sequence[float]]]
) -> Iterator[Record]:
    """Yield a record for each page that can be drawn."""
    document = opened(data)
    if isinstance(document, dict):
        return
    document.init_forms()
    for number, boxes in asked:
        for share in (1.0, 0.5):
            try:
                picture = _picture(document[number - 1], boxes, share)
            except Exception:  # a broken page; MemoryError too
                break
            if len(picture["png"]) <= MOST_BYTES // 8:
                yield {"number": number, **picture}
                break


def _picture(
    page: Any,  # noqa: ANN401
    boxes: Sequence[Sequence[float]],
    share: float,
) -> dict[str, Any]:
    across, up = page.get_size()
    scale = share * min(
        _LARGEST_SCALE,
        math.sqrt(MOST_PIXELS / (across * up)),
        _LONGEST / max(across, up),
    )
    bitmap = page.render(scale=scale, rev_byteorder=True)
    width = bitmap.width
    height = bitmap.height
    places = []
    for passage, *corners in boxes:
        (x0, y0), (x1, y1) = (
            _on(page, width, height, *corner) for corner in (corners[:2], corners[2:])
        )
        places.append((passage, min(x0, x1), min(y0, y1), abs(x1 - x0), abs(y1 - y0)))
    return {"width": width, "height": height, "png": _png(bitmap), "places": places}


def _on(page: Any, width: int, height: int, x: float, y: float) -> tuple[int, int]:  # noqa: ANN401 - of pypdfium2
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
    grey = all(row[::3] == row[1::3] == row[2::3] for row in rows)
    lines = b"".join(b"\0" + (row[::3] if grey else row) for row in rows)
    header = struct.pack(">IIBBBBB", width, height, 8, 0 if grey else 2, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(lines, 3)), (b"IEND", b"")]
    chunks = (
        struct.pack(">I", len(body))
        + name
        + body
        + struct.pack(">I", zlib.crc32(name + body))
        for name, body in parts
    )
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(chunks)).decode()


AUTHOR = "spscanner"
SIGNED = "This is a copy with highlights: its signatures hold for the original only."

_MAY_ANNOTATE = 1 << 5  # bit 6 of the permissions of an encrypted PDF
_PRINTED = 4  # flag of an annotation
_YELLOW = (255, 209, 0)


class Mark(NamedTuple):
    """A highlight and its note."""

    boxes: Sequence[Box]
    note: str
    strength: float  # from 0 to 1


def marked_copy(
    name: str, data: bytes, marks: Sequence[Mark]
) -> tuple[bytes, tuple[str, ...]]:
    """Copy a PDF with marks on its pages, and return the copy and notes for the user.

    Raises
    ------
    ValueError
        If the PDF cannot be opened, its encryption forbids notes, or it takes too long.
    ImportError
        Without pypdfium2.
    """
    import_extra("pypdfium2", f"{name}: highlighting a PDF", "files")
    found = next(read_apart(_copied, data, seconds_for(data), None, *marks), {})
    if "locked" in found:
        raise ValueError(
            f"{name}: got an encrypted PDF that allows no notes; expected one that"
            " does: decrypt it first, for example with `qpdf --decrypt"
            " --password=...`, or write --out page.html"
        )
    if "copy" not in found:
        why = found.get("broken", "too much time or memory")
        raise ValueError(
            f"{name}: got a PDF that cannot be copied ({why}); write --out page.html"
            " instead"
        )
    return base64.b64decode(found["copy"]), (SIGNED,) if found["signed"] else ()


def _copied(data: bytes, *asked: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Yield one record, with the copy or with the reason why there is none."""
    from pypdfium2 import raw

    marks = [Mark([Box(*box) for box in boxes], *further) for boxes, *further in asked]
    document = opened(data)
    if isinstance(document, dict):
        yield document
        return
    encrypted = raw.FPDF_GetSecurityHandlerRevision(document) >= 0
    if encrypted and not raw.FPDF_GetDocPermissions(document) & _MAY_ANNOTATE:
        yield {"locked": True}
        return
    signed = raw.FPDF_GetSignatureCount(document) > 0
    if signed:
        _annotate(
            raw, document[0], raw.FPDF_ANNOT_TEXT, [Box(1, 10, 10, 30, 30)], SIGNED, 1.0
        )
    for mark in marks:
        for number, boxes in groupby(mark.boxes, key=lambda box: box.page):
            page = document[number - 1]
            _annotate(
                raw,
                page,
                raw.FPDF_ANNOT_HIGHLIGHT,
                list(boxes),
                mark.note,
                mark.strength,
            )
            page.close()
    saved = io.BytesIO()
    document.save(saved)
    yield {"copy": base64.b64encode(saved.getbuffer()).decode(), "signed": signed}


def _annotate(
    raw: Any,  # noqa: ANN401
    page: Any,  # noqa: ANN401
    kind: int,
    boxes: Sequence[Box],
    note: str,
    strength: float,
) -> None:
    """Add a note, or a highlight with a quadrilateral for each box, and its text."""
    annotation = raw.FPDFPage_CreateAnnot(page, kind)
    if not annotation:
        raise MemoryError("no annotation can be made")
    alpha = round(255 * (0.35 + 0.65 * strength))
    raw.FPDFAnnot_SetColor(annotation, raw.FPDFANNOT_COLORTYPE_Color, *_YELLOW, alpha)
    around = raw.FS_RECTF(
        left=min(box.x0 for box in boxes),
        top=max(box.y1 for box in boxes),
        right=max(box.x1 for box in boxes),
        bottom=min(box.y0 for box in boxes),
    )
    raw.FPDFAnnot_SetRect(annotation, around)
    if kind == raw.FPDF_ANNOT_HIGHLIGHT:
        for _, x0, y0, x1, y1 in boxes:
            raw.FPDFAnnot_AppendAttachmentPoints(
                annotation, raw.FS_QUADPOINTSF(x0, y1, x1, y1, x0, y0, x1, y0)
            )
    raw.FPDFAnnot_SetFlags(annotation, _PRINTED)
    for key, value in ((b"Contents", note), (b"T", AUTHOR)):
        wide = ctypes.create_string_buffer(
            value.encode("utf-16-le", "replace") + b"\0\0"
        )
        raw.FPDFAnnot_SetStringValue(
            annotation, key, ctypes.cast(wide, ctypes.POINTER(raw.FPDF_WCHAR))
        )
    raw.FPDFPage_CloseAnnot(annotation)
