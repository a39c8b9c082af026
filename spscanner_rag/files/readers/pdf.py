"""PDF to text, page by page, without running headers and footers.

Headings are found by font size.

PDFium, Chromium's PDF library (BSD), gives the position and font of each character, and
reads a page in a third of the time that pypdf takes. It is C++ code that reads
untrusted files, so it runs in a separate process.
"""

import ctypes
import re
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import atan2, hypot, pi
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.files.apart import LEAST_SECONDS, Record, read_apart
from spscanner_rag.files.documents import PageStart, TextFile
from spscanner_rag.files.readers.text_builder import readable
from spscanner_rag.system.install_hints import import_extra
from spscanner_rag.text.blocks import Block
from spscanner_rag.text.divided_words import HYPHENS, LIGATURES, join_divided_words
from spscanner_rag.text.pages import page_bodies, sentence_goes_on

_LARGER = 1.15  # a line with letters this many times the usual size is a heading
_SPACE = re.compile(r"\s*")
_WORD = re.compile(r"\S+")
_SENTENCE_ENDS = tuple(".,;:")


def begins_as_pdf(data: bytes) -> bool:
    """Return whether a file begins as a PDF does, and not as markup."""
    return b"%PDF-" in data[:1024] and not data.lstrip().startswith(b"<")


def read_pdf(
    data: bytes,
    seconds: float = LEAST_SECONDS,
    check: Callable[[], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> TextFile:
    """Read a PDF.

    ``ValueError`` if broken, encrypted or without text, ``ImportError`` without
    pypdfium2.

    If its process has to end early, the text has the pages read until then, with a
    note; see `read_apart`. ``progress`` gets the number of pages read and the number of
    all pages.
    """
    import_extra("pypdfium2", "reading PDF", "files")
    records: list[Record] = []
    for record in read_apart(read_pages, data, seconds, check):
        records.append(record)
        if progress and "pages" in records[0]:
            progress(len(records) - 1, records[0]["pages"])
    first, *pages = records or [{"broken": f"nothing in {seconds:.0f} seconds"}]
    return converted(first, pages)


def converted(first: Record, pages: Sequence[Record]) -> TextFile:
    """The text of the pages that were read.

    If there is none, a ``ValueError`` that says why.
    """
    if "locked" in first:
        raise ValueError(
            "got an encrypted PDF that needs a password; expected one that can be read:"
            " decrypt it first, for example with `qpdf --decrypt --password=...`"
        )
    pages = [page for page in pages if "text" in page]
    count = first.get("pages", 0)
    slow = (
        f"the first of {count} pages takes too much time or memory"
        if count and not pages
        else ""
    )
    if reason := first.get("broken", slow):
        raise ValueError(
            f"got a PDF that cannot be read ({reason}); expected a complete one:"
            " download it again, or repair it, for example with `qpdf in.pdf out.pdf`"
        )
    unread = [
        number for number, page in enumerate(pages, start=1) if "broken_page" in page
    ]
    if not any(page["text"].strip() or page.get("values") for page in pages):
        if count and len(unread) == count:
            raise ValueError(
                f"got a PDF whose {count} pages are all broken; expected one that can"
                " be read"
            )
        raise ValueError(
            f"got a PDF without text on its {count} page{'' if count == 1 else 's'};"
            " expected text: scanned pages need OCR first, for example `ocrmypdf`"
        )
    notes = []
    if unread:
        notes.append(
            f"{len(unread)} of {len(pages)} pages are broken, the first is page"
            f" {unread[0]}"
        )
    empty = sum(not page["text"].strip() for page in pages) - len(unread)
    if 2 * empty > len(pages):
        notes.append(
            f"{empty} of {len(pages)} pages have no text; scanned pages need OCR first"
        )
    if len(pages) < count:
        notes.append(
            f"read {len(pages):,} of {count:,} pages, which took all the allowed time"
            " or memory: split the file"
        )
    labels = first["labels"] or [str(number) for number in range(1, count + 1)]
    return _joined(pages, labels, tuple(notes))


def _joined(
    pages: Sequence[Record], labels: Sequence[str], notes: tuple[str, ...]
) -> TextFile:
    """Join the pages into one text.

    A sentence may continue across a page break.
    """
    parts: list[str] = []
    starts: list[PageStart] = []
    blocks: list[Block] = []
    words: list[NDArray[np.int32]] = []
    length = 0
    before = ""
    texts = [page["text"] for page in pages]
    spans = page_bodies(texts, list(range(1, len(texts) + 1)))
    bodies = join_divided_words(
        [
            text[start:end].strip()
            for text, (start, end) in zip(texts, spans, strict=True)
        ]
    )
    levels = _levels(pages)
    for number, (page, span, body) in enumerate(
        zip(pages, spans, bodies, strict=True), start=1
    ):
        if before and body:
            parts.append("\n" if sentence_goes_on(before, body) else "\n\n")
            length += len(parts[-1])
        starts.append(PageStart(length, number, labels[number - 1]))
        words.append(_words(page, span, body, length))
        blocks += _headings(body, length, page.get("marked", {}), levels)
        values = "".join(f"\n\n{value}" for value in page.get("values", ()))
        body += values if body else values[2:] if not length else values
        parts.append(body)
        length += len(body)
        before = body or before
    return TextFile(
        "", "".join(parts), tuple(blocks), tuple(starts), notes, np.concatenate(words)
    )


def _words(
    page: Record, span: tuple[int, int], body: str, offset: int
) -> NDArray[np.int32]:
    """Spans and boxes of the words of a page's body: (n, 6).

    Hyphenated words are joined.
    """
    spans_and_boxes = array("i")  # 24 bytes per word, for a million words in a book
    boxes = page.get("boxes", ())
    cursor = 0
    for number, match in enumerate(_WORD.finditer(page["text"])):
        if not span[0] <= match.start() < span[1]:
            continue
        word = match.group().translate(LIGATURES)
        start = _SPACE.match(body, cursor).end()  # type: ignore[union-attr]
        cursor = start + len(word)
        # the hyphen was removed
        if word[-1] in HYPHENS and body[cursor - 1 : cursor] != word[-1]:
            cursor -= 1
        spans_and_boxes.extend(
            (offset + start, offset + cursor, *boxes[4 * number : 4 * number + 4])
        )
    return np.array(spans_and_boxes, np.int32).reshape(-1, 6)


def _levels(pages: Sequence[Record]) -> dict[float, int]:
    """Heading levels by font size, the largest first.

    Bold fonts have negative sizes.
    """
    sizes: Counter[float] = Counter()
    for page in pages:
        sizes.update(dict(page.get("sizes", ())))
    if not sizes:
        return {}
    body = sizes.most_common(1)[0][0]
    marked = {size for page in pages for size in page.get("marked", {}).values()}
    large = sorted(
        {abs(size) for size in marked if abs(size) >= _LARGER * body}, reverse=True
    )
    levels = {size: min(number, 6) for number, size in enumerate(large, start=1)}
    bold = {
        size: levels.get(-size, min(len(levels) + 1, 6))
        for size in marked
        if size < 0 and -size >= body
    }
    return levels | bold


def _headings(
    body: str, offset: int, marked: Mapping[str, float], levels: Mapping[float, int]
) -> list[Block]:
    """The headings of a page.

    Consecutive heading lines of one level are one heading.
    """
    headings: list[Block] = []
    start = offset
    goes_on = False
    for line in body.split("\n"):
        words = " ".join(line.split())
        level = levels.get(marked.get(words, 0), 0)
        if (
            level
            and any(map(str.isalpha, words))
            and not words.endswith(_SENTENCE_ENDS)
        ):
            end = start + len(line.rstrip())
            if goes_on and headings[-1].level == level:
                headings[-1] = headings[-1]._replace(
                    end=end, title=f"{headings[-1].title} {words}"
                )
            else:
                first = start + len(line) - len(line.lstrip())
                headings.append(Block(first, end, "heading", level=level, title=words))
            goes_on = True
        elif words:
            goes_on = False
        start += len(line) + 1
    return headings


MOST_CHARACTERS = 20_000_000
"""Most characters on all pages together, about 10,000 pages of a book."""

TENTHS = 10
"""Boxes are in tenths of a point."""

_MOST_FIELDS = 1_000  # annotations read per page, form fields included
_LONGEST_VALUE = 10_000  # characters
_LONGEST_LABEL = 100
_LONGEST_HEADING = 150
_FURTHEST = 10**6  # points; a page with a box further out is broken
_BOLD = ("bold", "black", "heavy")
_ENOUGH = 200  # characters that show how a page is rotated
_HYPHEN = 2  # PDFium's code for a hyphen at a line end; it leaves out the line break


def opened(data: bytes) -> Any:  # noqa: ANN401 - a document of pypdfium2
    """The document, opened with the empty password.

    If it cannot be opened, a record that says why.
    """
    import pypdfium2

    try:
        return pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        locked = error.err_code == pypdfium2.raw.FPDF_ERR_PASSWORD
        return {"locked": True} if locked else {"broken": str(error)[:120]}


def read_pages(data: bytes) -> Iterator[dict[str, Any]]:
    """Yield the number and labels of the pages, then each page.

    If there are none, yield why.
    """
    document = opened(data)
    if isinstance(document, dict):
        yield document
        return
    count = len(document)
    labels = [
        document.get_page_label(number)[:_LONGEST_LABEL] for number in range(count)
    ]
    yield {"pages": count, "labels": labels if all(map(str.strip, labels)) else []}
    document.init_forms()
    left = MOST_CHARACTERS
    for number in range(count):
        try:
            page = document[number]
            record = {**_page(page), "values": _form_values(document.formenv, page)}
            page.close()
        except Exception:  # MemoryError too
            record = {"text": "", "broken_page": True}
        left -= len(record["text"]) + sum(map(len, record.get("values", ())))
        if left < 0:
            return
        yield record


def _page(page: Any) -> dict[str, Any]:  # noqa: ANN401 - of pypdfium2
    """The text of a page, its words' boxes, its font sizes, and its emphasized lines.

    The lines are those in larger or bold fonts.

    A word is a run of characters without white space. Its box is left, bottom, right
    and top in tenths of a point; all boxes are in one flat list.
    """
    letters = _Letters(page.get_textpage())
    # sideways lines would come in arbitrary order
    if (turn := letters.turn()) != page.get_rotation():
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
                marked[joined] = (
                    -min(size, other) if bold and also else min(size, other)
                )
    body = sizes.most_common(1)[0][0] if sizes else 0
    larger = {line: size for line, size in marked.items() if size < 0 or size > body}
    return {
        "text": text,
        "sizes": list(sizes.items()),
        "marked": larger,
        "boxes": boxes,
    }


def _text_of(shown: Any) -> tuple[str, list[int]]:  # noqa: ANN401 - of pypdfium2
    """The text of a page, and PDFium's index of each of its characters."""
    from pypdfium2.raw import FPDFText_GetUnicode

    characters: list[str] = []
    places: list[int] = []
    handle = shown.raw
    codes = [
        FPDFText_GetUnicode(handle, number) for number in range(shown.count_chars())
    ]
    for number, code in enumerate(codes):
        if code == _HYPHEN:
            characters += ["-", "\n"]
            places += [number, number]
        elif (
            0xDC00 <= code < 0xE000
            and characters
            and "\ud800" <= characters[-1] < "\udc00"
        ):
            characters[-1] = chr(
                0x10000 + ((ord(characters[-1]) - 0xD800) << 10) + code - 0xDC00
            )
        elif code != 13:  # the carriage return of a line break
            characters.append(chr(code) if code <= sys.maxunicode else "\ufffd")
            places.append(number)
    return readable("".join(characters)), places


class _Letters:
    def __init__(self, shown: Any) -> None:  # noqa: ANN401 - of pypdfium2
        from pypdfium2 import raw

        self.page = shown
        self.shown = shown.raw
        self.raw = raw
        self.rectangle = raw.FS_RECTF()
        self.matrix = raw.FS_MATRIX()
        self.name = ctypes.create_string_buffer(200)

    def box(self, first: int, last: int) -> list[int]:
        """The box from one character to another.

        It is as high as their fonts allow letters to be.
        """
        box = self.rectangle
        self.raw.FPDFText_GetLooseCharBox(self.shown, first, box)
        left = box.left
        bottom = box.bottom
        right = box.right
        top = box.top
        self.raw.FPDFText_GetLooseCharBox(self.shown, last, box)
        corners = (
            min(left, box.left),
            min(bottom, box.bottom),
            max(right, box.right),
            max(top, box.top),
        )
        if not (
            corners[0] > -_FURTHEST
            and corners[1] > -_FURTHEST
            and max(corners) < _FURTHEST
        ):
            return [0, 0, 0, 0]  # the page is broken; its box may even have NaN
        return [round(TENTHS * corner) for corner in corners]

    def turn(self) -> int:
        """How far most letters are rotated counterclockwise: 0, 90, 180 or 270."""
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
        length = self.raw.FPDFText_GetFontInfo(
            self.shown, number, self.name, len(self.name), None
        )
        name = self.name.value.lower() if 0 < length <= len(self.name) else b""
        return round(min(abs(size), 1e4), 1), any(
            mark.encode() in name for mark in _BOLD
        )


def _form_values(form: Any, page: Any) -> list[str]:  # noqa: ANN401 - of pypdfium2
    """What was entered in the form fields of a page, and text annotations on it.

    A field is "name: value".
    """
    from pypdfium2 import raw

    values: dict[str, None] = {}
    for number in range(min(raw.FPDFPage_GetAnnotCount(page), _MOST_FIELDS)):
        if annotation := raw.FPDFPage_GetAnnot(page, number):
            values[readable(_field(raw, form, annotation))] = None
            raw.FPDFPage_CloseAnnot(annotation)
    return list(filter(None, values))


def _field(raw: Any, form: Any, annotation: Any) -> str:  # noqa: ANN401 - of pypdfium2
    def annotation_text(key: bytes) -> str:
        return _string(
            lambda *buffer: raw.FPDFAnnot_GetStringValue(annotation, key, *buffer)
        )

    def of_form(read_into: Callable[..., int]) -> str:
        return _string(lambda *buffer: read_into(form, annotation, *buffer))

    subtype = raw.FPDFAnnot_GetSubtype(annotation)
    if subtype == raw.FPDF_ANNOT_FREETEXT:
        return annotation_text(b"Contents")
    kind = (
        raw.FPDFAnnot_GetFormFieldType(form, annotation)
        if form
        else raw.FPDF_FORMFIELD_SIGNATURE
    )
    if subtype != raw.FPDF_ANNOT_WIDGET or kind == raw.FPDF_FORMFIELD_SIGNATURE:
        return ""
    if kind in (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON):
        state = annotation_text(b"AS")
        value = "" if state == "Off" else state
    else:
        value = of_form(raw.FPDFAnnot_GetFormFieldValue)
    name = of_form(raw.FPDFAnnot_GetFormFieldAlternateName) or of_form(
        raw.FPDFAnnot_GetFormFieldName
    )
    return f"{name}: {value}" if name and value else value


def _string(read_into: Callable[..., int]) -> str:
    """Read a text from PDFium, which first returns its length.

    One line of at most `_LONGEST_VALUE` characters.
    """
    from pypdfium2.raw import FPDF_WCHAR

    length = read_into(None, 0)  # in bytes, with the final zero
    buffer = ctypes.create_string_buffer(length)
    read_into(ctypes.cast(buffer, ctypes.POINTER(FPDF_WCHAR)), length)
    text = buffer.raw[: max(0, length - 2)].decode("utf-16-le", "replace")
    return " ".join(text.split())[:_LONGEST_VALUE]
