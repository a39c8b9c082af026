"""Copies a PDF with passages highlighted on its pages."""

import base64
import ctypes
import io
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from spscanner_rag.files.apart import read_apart, seconds_for
from spscanner_rag.files.readers.pdf import opened
from spscanner_rag.system.install_hints import import_extra
from spscanner_rag.text.word_boxes import Box

AUTHOR = "spscanner"
SIGNED = "This is a copy with highlights: its signatures hold for the original only."

_SIGNED_NOTE_BOX = Box(1, 10, 10, 30, 30)  # in the corner of the first page
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
    record = next(read_apart(_copied, data, seconds_for(data), None, *marks), {})
    if "locked" in record:
        raise ValueError(
            f"{name}: got an encrypted PDF that allows no notes; expected one that"
            " does: decrypt it first, for example with `qpdf --decrypt"
            " --password=...`, or write --out page.html"
        )
    if "copy" not in record:
        why = record.get("broken", "too much time or memory")
        raise ValueError(
            f"{name}: got a PDF that cannot be copied ({why}); write --out page.html"
            " instead"
        )
    copy = base64.b64decode(record["copy"])
    return copy, (SIGNED,) if record["signed"] else ()


def _copied(data: bytes, *marks: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Yield one record, with the copy or with the reason why there is none."""
    from pypdfium2 import raw

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
        note = Mark([_SIGNED_NOTE_BOX], SIGNED, 1.0)
        _annotate(raw, document[0], raw.FPDF_ANNOT_TEXT, note)
    for page_and_corners, note_text, strength in marks:  # from JSON, so boxes are lists
        boxes = [Box(*box) for box in page_and_corners]
        for number, page_boxes in groupby(boxes, key=lambda box: box.page):
            page = document[number - 1]
            mark = Mark(list(page_boxes), note_text, strength)
            _annotate(raw, page, raw.FPDF_ANNOT_HIGHLIGHT, mark)
            page.close()
    saved = io.BytesIO()
    document.save(saved)
    yield {"copy": base64.b64encode(saved.getbuffer()).decode(), "signed": signed}


def _annotate(
    raw: Any,  # noqa: ANN401 - of pypdfium2
    page: Any,  # noqa: ANN401 - of pypdfium2
    kind: int,
    mark: Mark,
) -> None:
    """Add a note, or a highlight with a quadrilateral for each box, and its text."""
    annotation = raw.FPDFPage_CreateAnnot(page, kind)
    if not annotation:
        raise MemoryError("no annotation can be made")
    alpha = round(255 * (0.35 + 0.65 * mark.strength))
    raw.FPDFAnnot_SetColor(annotation, raw.FPDFANNOT_COLORTYPE_Color, *_YELLOW, alpha)
    around = raw.FS_RECTF(
        left=min(box.x0 for box in mark.boxes),
        top=max(box.y1 for box in mark.boxes),
        right=max(box.x1 for box in mark.boxes),
        bottom=min(box.y0 for box in mark.boxes),
    )
    raw.FPDFAnnot_SetRect(annotation, around)
    if kind == raw.FPDF_ANNOT_HIGHLIGHT:
        for _, x0, y0, x1, y1 in mark.boxes:
            corners = raw.FS_QUADPOINTSF(x0, y1, x1, y1, x0, y0, x1, y0)
            raw.FPDFAnnot_AppendAttachmentPoints(annotation, corners)
    raw.FPDFAnnot_SetFlags(annotation, _PRINTED)
    for key, value in ((b"Contents", mark.note), (b"T", AUTHOR)):
        encoded = value.encode("utf-16-le", "replace") + b"\0\0"
        wide = ctypes.create_string_buffer(encoded)
        characters = ctypes.cast(wide, ctypes.POINTER(raw.FPDF_WCHAR))
        raw.FPDFAnnot_SetStringValue(annotation, key, characters)
    raw.FPDFPage_CloseAnnot(annotation)
