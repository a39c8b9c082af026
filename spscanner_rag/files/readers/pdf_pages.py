"""The pages of a PDF, read in a process of its own, which its parent may end at any moment.

PDFium, Chromium's reader (BSD), says where each character stands and in which letters, and reads a page in a
third of the time that pypdf takes. It is C++ that reads what strangers wrote: a crash ends this process only.
"""

import ctypes
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from math import atan2, hypot, pi
from typing import Any

from spscanner_rag.files.readers.text_builder import readable

MOST_CHARACTERS = 20_000_000
"""Of all pages; of 10,000 pages of a book."""

TENTHS = 10
"""Boxes are in tenths of a point."""

_MOST_FIELDS = 1_000  # of a form on a page
_LONGEST_VALUE = 10_000  # in characters
_LONGEST_LABEL = 100
_LONGEST_HEADING = 150
_FURTHEST = 10**6  # a box further out, in points, is of a broken page
_BOLD = ("bold", "black", "heavy")
_ENOUGH = 200  # characters that tell how a page is turned
_HYPHEN = 2  # what PDFium has for a hyphen at the end of a line, whose line break it leaves out


def opened(data: bytes) -> Any:  # noqa: ANN401 - a document of pypdfium2
    """The document, or a record that says why it cannot be opened; it tries the empty password."""
    import pypdfium2

    try:
        return pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        locked = error.err_code == pypdfium2.raw.FPDF_ERR_PASSWORD
        return {"locked": True} if locked else {"broken": str(error)[:120]}


def read_pages(data: bytes) -> Iterator[dict[str, Any]]:
    """The number and labels of the pages, or why there are none; then each page."""
    document = opened(data)
    if isinstance(document, dict):
        yield document
        return
    count = len(document)
    labels = [document.get_page_label(number)[:_LONGEST_LABEL] for number in range(count)]
    yield {"pages": count, "labels": labels if all(map(str.strip, labels)) else []}
    document.init_forms()
    left = MOST_CHARACTERS
    for number in range(count):
        try:
            page = document[number]
            found = {**_page(page), "values": _form_values(document.formenv, page)}
            page.close()
        except Exception:  # MemoryError is one
            found = {"text": "", "broken_page": True}
        left -= len(found["text"]) + sum(map(len, found.get("values", ())))
        if left < 0:
            return
        yield found


def _page(page: Any) -> dict[str, Any]:  # noqa: ANN401 - of pypdfium2
    """The text of a page, the boxes of its words, its sizes of letters, and its lines in larger or bold ones.

    A word is a run of characters that are no white space; its box is left, bottom, right and top in tenths of a
    point, all boxes one after another.
    """
    letters = _Letters(page.get_textpage())
    if (turn := letters.turn()) != page.get_rotation():  # lines that lie on their side would be in any order
        page.set_rotation(turn)
        letters = _Letters(page.get_textpage())
    text, places = _text_of(letters.page)
    sizes: Counter[float] = Counter()
    marked: dict[str, float] = {}
    boxes: list[int] = []
    start = 0
    for line in text.split("\n"):
        words = line.split()
        begins: list[int] = []
        for word in words:
            at = text.index(word, start)
            start = at + len(word)
            begins.append(places[at])
            boxes += letters.box(places[at], places[start - 1])
        joined = " ".join(words)
        if joined:
            (size, bold), (other, also) = map(letters.look, (begins[0], begins[-1]))
            sizes[size] += len(joined)
            if 1 < len(joined) <= _LONGEST_HEADING:
                marked[joined] = -min(size, other) if bold and also else min(size, other)
    body = sizes.most_common(1)[0][0] if sizes else 0
    larger = {line: size for line, size in marked.items() if size < 0 or size > body}
    return {"text": text, "sizes": list(sizes.items()), "marked": larger, "boxes": boxes}


def _text_of(shown: Any) -> tuple[str, list[int]]:  # noqa: ANN401 - of pypdfium2
    """The text of a page, and for each of its characters the number that PDFium has for it."""
    from pypdfium2.raw import FPDFText_GetUnicode

    characters: list[str] = []
    places: list[int] = []
    handle = shown.raw
    codes = [FPDFText_GetUnicode(handle, number) for number in range(shown.count_chars())]
    for number, code in enumerate(codes):
        if code == _HYPHEN:
            characters += ["-", "\n"]
            places += [number, number]
        elif 0xDC00 <= code < 0xE000 and characters and "\ud800" <= characters[-1] < "\udc00":
            characters[-1] = chr(0x10000 + ((ord(characters[-1]) - 0xD800) << 10) + code - 0xDC00)
        elif code != 13:  # of a line break
            characters.append(chr(code) if code <= sys.maxunicode else "\ufffd")
            places.append(number)
    return readable("".join(characters)), places


class _Letters:
    def __init__(self, shown: Any) -> None:  # noqa: ANN401 - of pypdfium2
        from pypdfium2 import raw

        self.page, self.shown, self.raw = shown, shown.raw, raw
        self.rectangle, self.matrix = raw.FS_RECTF(), raw.FS_MATRIX()
        self.name = ctypes.create_string_buffer(200)

    def box(self, first: int, last: int) -> list[int]:
        """The box from one character to another, as high as the letters of their fonts can be."""
        box = self.rectangle
        self.raw.FPDFText_GetLooseCharBox(self.shown, first, box)
        left, bottom, right, top = box.left, box.bottom, box.right, box.top
        self.raw.FPDFText_GetLooseCharBox(self.shown, last, box)
        corners = min(left, box.left), min(bottom, box.bottom), max(right, box.right), max(top, box.top)
        if not (corners[0] > -_FURTHEST and corners[1] > -_FURTHEST and max(corners) < _FURTHEST):
            return [0, 0, 0, 0]  # of a broken page, with NaN perhaps
        return [round(TENTHS * corner) for corner in corners]

    def turn(self) -> int:
        """How far most letters are turned, against the clock: 0, 90, 180 or 270 degrees."""
        turns: Counter[int] = Counter()
        count = self.page.count_chars()
        for number in range(0, count, count // _ENOUGH + 1):
            if self.raw.FPDFText_GetMatrix(self.shown, number, self.matrix):
                turns[round(2 * atan2(self.matrix.b, self.matrix.a) / pi) % 4 * 90] += 1
        return turns.most_common(1)[0][0] if turns else 0

    def look(self, number: int) -> tuple[float, bool]:
        size = self.raw.FPDFText_GetFontSize(self.shown, number)
        if self.raw.FPDFText_GetMatrix(self.shown, number, self.matrix):
            size *= hypot(self.matrix.c, self.matrix.d) or 1
        length = self.raw.FPDFText_GetFontInfo(self.shown, number, self.name, len(self.name), None)
        name = self.name.value.lower() if 0 < length <= len(self.name) else b""
        return round(min(abs(size), 1e4), 1), any(mark.encode() in name for mark in _BOLD)


def _form_values(form: Any, page: Any) -> list[str]:  # noqa: ANN401 - of pypdfium2; no form is None
    """What was typed or chosen in the fields of a page, as "name: value", and text that was written on it."""
    from pypdfium2 import raw

    found: dict[str, None] = {}
    for number in range(min(raw.FPDFPage_GetAnnotCount(page), _MOST_FIELDS)):
        if annotation := raw.FPDFPage_GetAnnot(page, number):
            found[readable(_field(raw, form, annotation))] = None
            raw.FPDFPage_CloseAnnot(annotation)
    return list(filter(None, found))


def _field(raw: Any, form: Any, annotation: Any) -> str:  # noqa: ANN401 - of pypdfium2
    def own(key: bytes) -> str:
        return _string(lambda *buffer: raw.FPDFAnnot_GetStringValue(annotation, key, *buffer))

    def of_form(read: Callable[..., int]) -> str:
        return _string(lambda *buffer: read(form, annotation, *buffer))

    subtype = raw.FPDFAnnot_GetSubtype(annotation)
    if subtype == raw.FPDF_ANNOT_FREETEXT:
        return own(b"Contents")
    kind = raw.FPDFAnnot_GetFormFieldType(form, annotation) if form else raw.FPDF_FORMFIELD_SIGNATURE
    if subtype != raw.FPDF_ANNOT_WIDGET or kind == raw.FPDF_FORMFIELD_SIGNATURE:
        return ""
    if kind in (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON):
        value = "" if (state := own(b"AS")) == "Off" else state
    else:
        value = of_form(raw.FPDFAnnot_GetFormFieldValue)
    name = of_form(raw.FPDFAnnot_GetFormFieldAlternateName) or of_form(raw.FPDFAnnot_GetFormFieldName)
    return f"{name}: {value}" if name and value else value


def _string(read: Callable[..., int]) -> str:
    """A text of PDFium, which tells its length first; on one line, at most `_LONGEST_VALUE` characters."""
    from pypdfium2.raw import FPDF_WCHAR

    length = read(None, 0)  # in bytes, with a zero at the end
    buffer = ctypes.create_string_buffer(length)
    read(ctypes.cast(buffer, ctypes.POINTER(FPDF_WCHAR)), length)
    text = buffer.raw[: max(0, length - 2)].decode("utf-16-le", "replace")
    return " ".join(text.split())[:_LONGEST_VALUE]
