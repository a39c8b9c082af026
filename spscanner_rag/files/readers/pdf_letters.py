"""Words and fonts of a PDF's page, from PDFium.

PDFium, Chromium's PDF library (BSD), gives the position and font of each character. It
is C++ code that reads untrusted files, so it runs in a separate process.

A book has a million characters. Each call of PDFium for one of them takes longer than
what it does, so a page's characters come in one call, its words are placed as arrays,
and only letters at the ends of strips are asked for their font.
"""

import ctypes
import re
import sys
from collections import Counter
from collections.abc import Iterator
from ctypes import c_int, c_void_p
from functools import lru_cache
from math import atan2, hypot, pi
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.files.readers.pdf_lines import Corners, Strip
from spscanner_rag.files.readers.text_builder import readable

TENTHS = 10
"""Boxes are in tenths of a point."""

_Numbers = NDArray[np.int64]
_Edges = NDArray[np.float64]
_Number = TypeVar("_Number", np.int64, np.float64)

_GAP = 0.9  # letter heights between two strips of a line
_OTHER_LINE = 0.5  # letter heights by which a word is above or below its line
_FURTHEST = 10**6  # points; a page with a box further out is broken
# "medi" is the bold of Nimbus, "bx" that of Computer Modern.
_BOLD = re.compile(rb"bold|black|heavy|demi|medi(?!um)|cmbx|sfbx")
_ENOUGH = 200  # characters that show how a page is rotated
_FEWEST_TO_SAMPLE = 3  # words; words within longer strips are looked at as well
_HYPHEN = 2  # PDFium's code for a hyphen at a line end; it leaves out the line break
_CARRIAGE_RETURN = 13  # before the line feed of each line break
_LINE_BREAK = 10
_LAST_OF_ASCII = 127
_IS_SPACE = np.array([chr(code).isspace() for code in range(0x3002)])
"""Of each character up to the last that is white space, and one more."""

_HALF_POINT = 5  # in tenths
_STEP_BACK = 0.25  # letter heights to the left, where a new line begins
_LONGEST_WORD = 200  # letters; others are not looked at one by one
_TURNS = {
    0: ((0, 1, 2, 3), (1, 1, 1, 1)),
    1: ((1, 2, 3, 0), (1, -1, 1, -1)),
    2: ((2, 3, 0, 1), (-1, -1, -1, -1)),
    3: ((3, 0, 1, 2), (-1, 1, -1, 1)),
}
"""By quarters: which edges of a box are its left, bottom, right and top on the page
turned clockwise, so that letters are upright, and their signs."""


class _Look(NamedTuple):
    size: float
    bold: bool
    turn: int  # in quarters, counterclockwise


class _Words(NamedTuple):
    """The words of a page, in the order of the file."""

    words: list[str]
    first_letters: list[int]  # PDFium's index of the first letter of each
    last_letters: list[int]
    line_starts: list[int]  # numbers of words


def strips_of(page: Any) -> list[Strip]:  # noqa: ANN401 - of pypdfium2
    """The strips of a page, in the order of the file.

    A word is a run of characters without white space.
    """
    letters = _Letters(page.get_textpage())
    # sideways lines would come in arbitrary order
    if (turn := letters.turn()) != page.get_rotation():
        page.set_rotation(turn)
        letters = _Letters(page.get_textpage())
    page_words = _words_of(letters)
    if not page_words.words:
        return []
    first = letters.rectangles(page_words.first_letters)
    last = letters.rectangles(page_words.last_letters)
    suspects = _on_two_lines(first, last, turn // 90)
    if len(suspects):
        page_words = _with_split_words(letters, page_words, suspects, turn // 90)
        first = letters.rectangles(page_words.first_letters)
        last = letters.rectangles(page_words.last_letters)
    boxes = _boxes(first, last)
    upright = _turned(boxes, turn // 90)
    starts = _starts_of_strips(upright, page_words.line_starts)
    return list(_strips(letters, page_words, boxes, upright, starts, turn // 90))


def _words_of(letters: "_Letters") -> _Words:
    text, places = letters.text()
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    is_space = _IS_SPACE[np.minimum(codes, len(_IS_SPACE) - 1)]
    # where words begin and end, in turn
    edges = np.flatnonzero(np.diff(~is_space, prepend=False, append=False))
    starts = edges[::2]
    breaks = np.flatnonzero(codes == _LINE_BREAK)
    line_starts = np.searchsorted(starts, breaks)
    return _Words(
        text.split(),
        list(places[starts].tolist()),
        list(places[edges[1::2] - 1].tolist()),
        [0, *line_starts.tolist()],
    )


def _turned(boxes: NDArray[_Number], quarters: int) -> NDArray[_Number]:
    """Boxes on the page turned clockwise, so that letters are upright."""
    edges, signs = _TURNS[quarters]
    turned: NDArray[_Number] = boxes[:, edges] * np.array(signs, boxes.dtype)
    return turned


def _on_two_lines(first: _Edges, last: _Edges, quarters: int) -> list[int]:
    """Numbers of words whose last letter is not at the height of the first.

    They are written on their side, or PDFium joined a lone letter to the line above.
    """
    first = _turned(first, quarters)
    last = _turned(last, quarters)
    is_apart = (last[:, 3] <= first[:, 1]) | (last[:, 1] >= first[:, 3])
    return list(np.flatnonzero(is_apart).tolist())


def _with_split_words(
    letters: "_Letters", page_words: _Words, suspects: list[int], quarters: int
) -> _Words:
    """The words, with those that are on two lines cut."""
    cuts: dict[int, list[int]] = {}
    for number in suspects:
        cuts[number] = letters.line_breaks(
            page_words.first_letters[number], page_words.last_letters[number], quarters
        )
    new_lines = set(page_words.line_starts)
    split = _Words([], [], [], [])
    for number, word in enumerate(page_words.words):
        if number in new_lines:
            split.line_starts.append(len(split.words))
        first = page_words.first_letters[number]
        last = page_words.last_letters[number]
        breaks = cuts.get(number, [])
        if len(word) != last - first + 1:
            breaks = []  # letters of several codes, whose places are not known
        start = 0
        for cut in [*breaks, len(word)]:
            if start:
                split.line_starts.append(len(split.words))
            split.words.append(word[start:cut])
            split.first_letters.append(first + start)
            split.last_letters.append(last if cut == len(word) else first + cut - 1)
            start = cut
    return split


def _boxes(first: _Edges, last: _Edges) -> _Numbers:
    """The boxes of words from those of their first and last letters.

    Left, bottom, right and top, shape ``(words, 4)``, in tenths of a point. A box is
    zero if the page is broken.
    """
    boxes = np.minimum(first, last)
    boxes[:, 2:] = np.maximum(first, last)[:, 2:]
    # not >=: a broken page may even have NaN
    is_near = (boxes[:, :2].min(axis=1) > -_FURTHEST) & (
        boxes[:, 2:].max(axis=1) < _FURTHEST
    )
    boxes[~is_near] = 0
    tenths: _Numbers = np.rint(TENTHS * boxes).astype(np.int64)
    return tenths


def _starts_of_strips(upright: _Numbers, line_starts: list[int]) -> list[int]:
    """The numbers of words that begin a strip.

    One of PDFium's lines is cut where a gap is wide, or the next word is not beside.
    """
    left, right = upright[:-1], upright[1:]
    heights = np.maximum(left[:, 3] - left[:, 1], right[:, 3] - right[:, 1])
    heights = np.maximum(heights, _HALF_POINT)
    gaps = np.maximum(right[:, 0] - left[:, 2], left[:, 0] - right[:, 2])
    steps = np.abs(right[:, 1] + right[:, 3] - left[:, 1] - left[:, 3]) / 2
    continues = (gaps <= _GAP * heights) & (steps <= _OTHER_LINE * heights)
    is_start = np.ones(len(upright) + 1, dtype=bool)
    is_start[1:-1] = ~continues
    is_start[line_starts] = True
    return list(np.flatnonzero(is_start[:-1]).tolist())


def _strips(
    letters: "_Letters",
    page_words: _Words,
    boxes: _Numbers,
    upright: _Numbers,
    starts: list[int],
    turn: int,
) -> Iterator[Strip]:
    box_of_word: list[Corners] = list(zip(*boxes.T.tolist(), strict=True))
    lowest = np.minimum.reduceat(upright[:, :2], starts) / TENTHS
    highest = np.maximum.reduceat(upright[:, 2:], starts) / TENTHS
    edges = np.hstack([lowest, highest]).tolist()
    ends = [*starts[1:], len(boxes)]
    first_looks = letters.looks([page_words.first_letters[start] for start in starts])
    last_looks = letters.looks([page_words.last_letters[end - 1] for end in ends])
    for number, (first, end) in enumerate(zip(starts, ends, strict=True)):
        left, bottom, right, top = edges[number]
        look = first_looks[number]
        last_look = last_looks[number]
        bold = look.bold and last_look.bold
        if bold and end - first > _FEWEST_TO_SAMPLE:
            middle = [first + (end - first) * share // 4 for share in (1, 2, 3)]
            inner_looks = letters.looks([page_words.first_letters[n] for n in middle])
            bold = all(inner.bold for inner in inner_looks)
        yield Strip(
            tuple(page_words.words[first:end]),
            tuple(box_of_word[first:end]),
            left,
            bottom,
            right,
            top,
            min(look.size, last_look.size),
            bold,
            look.turn != turn,
        )


class _Letters:
    def __init__(self, shown: Any) -> None:  # noqa: ANN401 - of pypdfium2
        from pypdfium2 import raw

        self.page = shown
        self.shown = shown.raw
        self.raw = raw
        self._address = ctypes.cast(shown.raw, c_void_p).value
        self.matrix = raw.FS_MATRIX()
        self.name = ctypes.create_string_buffer(200)
        self._looks: dict[int, _Look] = {}

    def text(self) -> tuple[str, _Numbers]:
        """The text of the page, and PDFium's index of each of its characters."""
        codes = self._codes()
        places = np.arange(len(codes))
        counts = np.ones(len(codes), dtype=np.int64)
        counts[codes == _CARRIAGE_RETURN] = 0
        counts[codes == _HYPHEN] = 2
        places = np.repeat(places, counts)
        codes = codes[places]
        hyphens = np.flatnonzero(codes == _HYPHEN)
        codes[hyphens[::2]] = ord("-")
        codes[hyphens[1::2]] = ord("\n")
        is_first = (codes >= 0xD800) & (codes < 0xDC00)
        is_second = (codes >= 0xDC00) & (codes < 0xE000)
        pairs = np.flatnonzero(is_first[:-1] & is_second[1:])
        codes[pairs] = 0x10000 + ((codes[pairs] - 0xD800) << 10)
        codes[pairs] += codes[pairs + 1] - 0xDC00
        codes = np.delete(codes, pairs + 1)
        places = np.delete(places, pairs + 1)
        codes[codes > sys.maxunicode] = 0xFFFD
        text = codes.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
        return readable(text), places

    def _codes(self) -> _Numbers:
        """The code of each character."""
        count = self.page.count_chars()
        code_of = self.raw.FPDFText_GetUnicode
        buffer = (ctypes.c_ushort * (count + 1))()
        if self.raw.FPDFText_GetText(self.shown, 0, count, buffer) != count + 1:
            # control characters are left out, so places would be wrong
            codes = [code_of(self.shown, number) for number in range(count)]
            return np.array(codes, dtype=np.int64)
        text: _Numbers = np.frombuffer(buffer, np.uint16, count).astype(np.int64)
        # hyphens have another code here, and broken fonts have cut ones
        for number in np.flatnonzero(text > _LAST_OF_ASCII).tolist():
            text[number] = code_of(self.shown, number)
        return text

    def line_breaks(self, first: int, last: int, quarters: int) -> list[int]:
        """Which letters of a word are above or below the one before, and to its left.

        None if the word is written on its side, or is too long to be one. Letters
        straight below each other are vertical writing.
        """
        if last - first > _LONGEST_WORD or self.looks([first])[0].turn != quarters:
            return []
        edges = _turned(self.rectangles(list(range(first, last + 1))), quarters)
        before = edges[:-1]
        after = edges[1:]
        is_apart = (after[:, 3] <= before[:, 1]) | (after[:, 1] >= before[:, 3])
        heights = before[:, 3] - before[:, 1]
        is_apart &= before[:, 0] - after[:, 0] > _STEP_BACK * heights
        return list((np.flatnonzero(is_apart) + 1).tolist())

    def rectangles(self, numbers: list[int]) -> _Edges:
        """Where letters are, in points: left, bottom, right and top.

        They are as high as their fonts allow.
        """
        read = _addressed(
            self.raw.FPDFText_GetLooseCharBox, c_int, c_void_p, c_int, c_void_p
        )
        page = self._address
        rectangles = (self.raw.FS_RECTF * len(numbers))()
        address = ctypes.addressof(rectangles)
        size = ctypes.sizeof(self.raw.FS_RECTF)
        for number in numbers:
            read(page, number, address)
            address += size
        edges = np.frombuffer(rectangles, np.float32).reshape(-1, 4)
        # PDFium's order is left, top, right, bottom
        return edges[:, [0, 3, 2, 1]].astype(np.float64)

    def turn(self) -> int:
        """How far most letters are rotated counterclockwise: 0, 90, 180 or 270."""
        turns: Counter[int] = Counter()
        count = self.page.count_chars()
        numbers = range(0, count, count // _ENOUGH + 1)
        for number in numbers:
            if self.raw.FPDFText_GetMatrix(self.shown, number, self.matrix):
                quarters = self._quarters()
                turns[quarters] += 1
                if 2 * turns[quarters] > len(numbers):
                    return quarters * 90
        return turns.most_common(1)[0][0] * 90 if turns else 0

    def _quarters(self) -> int:
        rise = self.matrix.b
        run = self.matrix.a
        if rise == 0 and run > 0:
            return 0  # nearly all letters stand upright
        return round(2 * atan2(rise, run) / pi) % 4

    def looks(self, numbers: list[int]) -> list[_Look]:
        """Size, weight and direction of some letters."""
        object_of = _addressed(
            self.raw.FPDFText_GetTextObject, c_void_p, c_void_p, c_int
        )
        page = self._address
        looks = []
        for number in numbers:
            # all letters that one command of the page draws look alike
            drawn_by = object_of(page, number)
            look = self._looks.get(drawn_by)
            if look is None:
                look = self._look(number)
                if drawn_by is not None:
                    self._looks[drawn_by] = look
            looks.append(look)
        return looks

    def _look(self, number: int) -> _Look:
        size = self.raw.FPDFText_GetFontSize(self.shown, number)
        turn = 0
        if self.raw.FPDFText_GetMatrix(self.shown, number, self.matrix):
            size *= hypot(self.matrix.c, self.matrix.d) or 1
            turn = self._quarters()
        length = self.raw.FPDFText_GetFontInfo(
            self.shown, number, self.name, len(self.name), None
        )
        name = self.name.value if 0 < length <= len(self.name) else b""
        return _Look(round(min(abs(size), 1e4), 1), _is_bold(name), turn)


@lru_cache(maxsize=1_000)
def _is_bold(font: bytes) -> bool:
    return _BOLD.search(font.lower()) is not None


def _addressed(function: Any, result: type, *arguments: type) -> Any:  # noqa: ANN401
    """A function of PDFium that takes addresses as numbers.

    It takes half the time of one whose pointers ctypes has to check.
    """
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return ctypes.CFUNCTYPE(result, *arguments)(address)
