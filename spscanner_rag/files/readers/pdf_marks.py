"""A copy of a PDF with highlights and notes on it, made in a process of its own, as reading is."""

import base64
import ctypes
import io
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from spscanner_rag.files.apart import read_apart, seconds_for
from spscanner_rag.files.readers.pdf_pages import opened
from spscanner_rag.text.extras import needed
from spscanner_rag.text.word_boxes import Box

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


def marked_copy(name: str, data: bytes, marks: Sequence[Mark]) -> tuple[bytes, tuple[str, ...]]:
    """A PDF with marks on its pages, and what has to be said about it.

    Raises
    ------
    ValueError
        If it cannot be opened, is encrypted against notes, or takes too long.
    ImportError
        Without pypdfium2.
    """
    needed("pypdfium2", f"{name}: highlighting a PDF", "files")
    found = next(read_apart(_copied, data, seconds_for(data), None, *marks), {})
    if "locked" in found:
        raise ValueError(
            f"{name}: got an encrypted PDF that allows no notes; expected one that does: decrypt it first, for "
            "example with `qpdf --decrypt --password=...`, or write --out page.html"
        )
    if "copy" not in found:
        why = found.get("broken", "too much time or memory")
        raise ValueError(f"{name}: got a PDF that cannot be copied ({why}); write --out page.html instead")
    return base64.b64decode(found["copy"]), (SIGNED,) if found["signed"] else ()


def _copied(data: bytes, *asked: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """A record of the copy, or of why there is none."""
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
        _annotate(raw, document[0], raw.FPDF_ANNOT_TEXT, [Box(1, 10, 10, 30, 30)], SIGNED, 1.0)
    for mark in marks:
        for number, boxes in groupby(mark.boxes, key=lambda box: box.page):
            page = document[number - 1]
            _annotate(raw, page, raw.FPDF_ANNOT_HIGHLIGHT, list(boxes), mark.note, mark.strength)
            page.close()
    saved = io.BytesIO()
    document.save(saved)
    yield {"copy": base64.b64encode(saved.getbuffer()).decode(), "signed": signed}


def _annotate(raw: Any, page: Any, kind: int, boxes: Sequence[Box], note: str, strength: float) -> None:  # noqa: ANN401 - of pypdfium2
    """Add a note, or a highlight with a quad for each box, and its text."""
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
        wide = ctypes.create_string_buffer(value.encode("utf-16-le", "replace") + b"\0\0")
        raw.FPDFAnnot_SetStringValue(annotation, key, ctypes.cast(wide, ctypes.POINTER(raw.FPDF_WCHAR)))
    raw.FPDFPage_CloseAnnot(annotation)
