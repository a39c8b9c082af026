"""Words, fonts and form values of a PDF's page, from PDFium.

PDFium, Chromium's PDF library (BSD), gives the position and font of each character. It
is C++ code that reads untrusted files, so it runs in a separate process.
"""

import ctypes
import re
import sys
from collections import Counter
from collections.abc import Callable
from math import atan2, hypot, pi
from typing import Any, NamedTuple

from spscanner_rag.files.readers.pdf_lines import Corners, Strip
from spscanner_rag.files.readers.text_builder import readable

TENTHS = 10
"""Boxes are in tenths of a point."""

_WORD = re.compile(r"\S+")
_GAP = 0.9  # letter heights between two strips of a line
_OTHER_LINE = 0.5  # letter heights by which a word is above or below its line
_MOST_FIELDS = 1_000  # annotations read per page, form fields included
_LONGEST_VALUE = 10_000  # characters
_FURTHEST = 10**6  # points; a page with a box further out is broken
# "medi" is the bold of Nimbus, "bx" that of Computer Modern.
_BOLD = re.compile(rb"bold|black|heavy|demi|medi(?!um)|cmbx|sfbx")
_ENOUGH = 200  # characters that show how a page is rotated
_HYPHEN = 2  # PDFium's code for a hyphen at a line end; it leaves out the line break
_HALF_POINT = 5  # in tenths


class _Look(NamedTuple):
    size: float
    bold: bool
    turn: int  # in quarters, counterclockwise


def strips_of(page: Any) -> list[Strip]:  # noqa: ANN401 - of pypdfium2
    """The strips of a page, in the order of the file.

    A word is a run of characters without white space.
    """
    letters = _Letters(page.get_textpage())
    # sideways lines would come in arbitrary order
    if (turn := letters.turn()) != page.get_rotation():
        page.set_rotation(turn)
        letters = _Letters(page.get_textpage())
    text, places = _text_of(letters.page)
    strips: list[Strip] = []
    start = 0
    for line in text.split("\n"):
        words: list[str] = []
        ends: list[tuple[int, int]] = []  # first and last letter of each word
        for match in _WORD.finditer(line):
            words.append(match[0])
            ends.append(
                (places[start + match.start()], places[start + match.end() - 1])
            )
        strips += _strips_of_line(letters, words, ends, turn // 90)
        start += len(line) + 1
    return strips


def _strips_of_line(
    letters: "_Letters", words: list[str], ends: list[tuple[int, int]], turn: int
) -> list[Strip]:
    """Cut one of PDFium's lines where a gap is wide, or the next word is not beside."""
    strips: list[Strip] = []
    first = 0
    boxes = [letters.box(*word_ends) for word_ends in ends]
    upright = [_turned(box, turn) for box in boxes]
    for end in range(1, len(words) + 1):
        if end < len(words) and _continues(upright[end - 1], upright[end]):
            continue
        look = letters.look(ends[first][0])
        last_look = letters.look(ends[end - 1][-1])
        part = upright[first:end]
        strips.append(
            Strip(
                tuple(words[first:end]),
                tuple(boxes[first:end]),
                min(box[0] for box in part) / TENTHS,
                min(box[1] for box in part) / TENTHS,
                max(box[2] for box in part) / TENTHS,
                max(box[3] for box in part) / TENTHS,
                min(look.size, last_look.size),
                look.bold and last_look.bold,
                look.turn != turn,
            )
        )
        first = end
    return strips


def _continues(left: Corners, right: Corners) -> bool:
    """Whether a word stands beside the one before it."""
    height = max(left[3] - left[1], right[3] - right[1], _HALF_POINT)
    gap = max(right[0] - left[2], left[0] - right[2])
    steps = abs(right[1] + right[3] - left[1] - left[3]) / 2
    return gap <= _GAP * height and steps <= _OTHER_LINE * height


def _turned(box: Corners, turn: int) -> Corners:
    """A box on the page turned clockwise by quarters, so that letters are upright."""
    left, bottom, right, top = box
    match turn:
        case 1:
            return bottom, -right, top, -left
        case 2:
            return -right, -top, -left, -bottom
        case 3:
            return -top, left, -bottom, right
        case _:
            return box


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

    def box(self, first: int, last: int) -> Corners:
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
        left = min(left, box.left)
        bottom = min(bottom, box.bottom)
        right = max(right, box.right)
        top = max(top, box.top)
        if not (
            left > -_FURTHEST and bottom > -_FURTHEST and max(right, top) < _FURTHEST
        ):
            return 0, 0, 0, 0  # the page is broken; its box may even have NaN
        return (
            round(TENTHS * left),
            round(TENTHS * bottom),
            round(TENTHS * right),
            round(TENTHS * top),
        )

    def turn(self) -> int:
        """How far most letters are rotated counterclockwise: 0, 90, 180 or 270."""
        turns: Counter[int] = Counter()
        count = self.page.count_chars()
        for number in range(0, count, count // _ENOUGH + 1):
            if self.raw.FPDFText_GetMatrix(self.shown, number, self.matrix):
                turns[self._quarters()] += 1
        return turns.most_common(1)[0][0] * 90 if turns else 0

    def _quarters(self) -> int:
        return round(2 * atan2(self.matrix.b, self.matrix.a) / pi) % 4

    def look(self, number: int) -> _Look:
        """Size, weight and direction of a letter."""
        size = self.raw.FPDFText_GetFontSize(self.shown, number)
        turn = 0
        if self.raw.FPDFText_GetMatrix(self.shown, number, self.matrix):
            size *= hypot(self.matrix.c, self.matrix.d) or 1
            turn = self._quarters()
        length = self.raw.FPDFText_GetFontInfo(
            self.shown, number, self.name, len(self.name), None
        )
        name = self.name.value.lower() if 0 < length <= len(self.name) else b""
        is_bold = _BOLD.search(name) is not None
        return _Look(round(min(abs(size), 1e4), 1), is_bold, turn)


def form_values(form: Any, page: Any) -> list[str]:  # noqa: ANN401 - of pypdfium2
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
