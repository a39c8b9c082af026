"""Words of scanned pages, recognized by Tesseract.

Tesseract (Apache-2.0) is a program of its own, which is not installed with this
package. It gets the picture of a page on its standard input, and answers with a line
for each word. It runs in the separate process that reads the file, and ends with it.
"""

import ctypes
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from math import sqrt
from statistics import median
from typing import Any, NamedTuple

from spscanner_rag.files.readers.pdf_letters import TENTHS
from spscanner_rag.files.readers.pdf_lines import Corners, Strip
from spscanner_rag.files.readers.text_builder import readable
from spscanner_rag.system.parent_death import end_with_parent

PROGRAM = "tesseract"
INSTALL = "apt install tesseract-ocr, or brew install tesseract"
SECONDS_PER_PAGE = 60.0
"""A page that takes longer is left without text."""

_DOTS_PER_INCH = 300
_MOST_PIXELS = 12_000_000  # a sheet of A4 has 8.7 million; larger ones are coarser
_MOST_WORDS = 20_000  # on a page
_LANGUAGES = re.compile(r"[A-Za-z0-9_]+(/[A-Za-z0-9_]+)?(\+[A-Za-z0-9_]+)*")
_GAP = 0.9  # line heights between two strips of a line
_TALL = 1.5  # lines so many times as high as most are set in larger letters
_POINTS_PER_INCH = 72
_TURNS = (0, 180, 90, 270)  # degrees
_SURE = 60.0  # Tesseract's mean confidence; of pages upside down it is about 30
_FIELDS = 12
_WORD_LEVEL = "5"


class _Word(NamedTuple):
    line: tuple[str, ...]  # numbers of its block, paragraph and line
    text: str
    left: int  # in pixels, from the upper left corner
    top: int
    right: int
    bottom: int
    confidence: float  # 0 to 100


class Recognizer(NamedTuple):
    """How pages are recognized."""

    program: str  # its path
    languages: str


def recognizer(languages: str) -> Recognizer:
    """Find Tesseract and its data for some languages.

    Parameters
    ----------
    languages : str
        As Tesseract names them, for example ``"eng"`` or ``"deu+eng"``.

    Raises
    ------
    ValueError
        If that is no name of languages, or their data is missing.
    ImportError
        If Tesseract is not installed.
    """
    if not _LANGUAGES.fullmatch(languages):
        raise ValueError(
            f"got ocr={languages!r}; expected languages as Tesseract names them, such"
            " as eng or deu+eng"
        )
    program = shutil.which(PROGRAM)
    if program is None:
        raise ImportError(f"OCR needs the program {PROGRAM}: {INSTALL}")
    listed = subprocess.run(
        [program, "--list-langs"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SECONDS_PER_PAGE,
        check=False,
    )
    installed = listed.stdout.decode("utf-8", "replace").split("\n")[1:]
    for language in languages.split("+"):
        if language not in installed:
            raise ValueError(
                f"got ocr={languages!r}, but Tesseract has no data for {language};"
                f" expected one of {', '.join(filter(None, installed))}: install it,"
                f" for example with `apt install tesseract-ocr-{language}`"
            )
    return Recognizer(program, languages)


def recognized(page: Any, by: Recognizer) -> list[Strip]:  # noqa: ANN401 - of pypdfium2
    """The strips of a page's picture, in Tesseract's order.

    A page may have been scanned upside down or on its side: if Tesseract is unsure, it
    gets the picture turned.
    """
    best: list[Strip] = []
    best_confidence = -1.0
    for turn in _TURNS:
        strips, confidence = _recognized(page, by, turn)
        if confidence > best_confidence:
            best = strips
            best_confidence = confidence
        if confidence >= _SURE:
            break
    return best


def _recognized(
    page: Any,  # noqa: ANN401 - of pypdfium2
    by: Recognizer,
    turn: int,
) -> tuple[list[Strip], float]:
    """The strips of the picture turned clockwise by degrees, and the confidence."""
    width, height = page.get_size()
    inches = width * height / _POINTS_PER_INCH**2
    dots = min(_DOTS_PER_INCH, sqrt(_MOST_PIXELS / max(inches, 1e-6)))
    scale = dots / _POINTS_PER_INCH
    bitmap = page.render(scale=scale, rotation=turn, grayscale=True)
    size = (bitmap.width, bitmap.height)
    words = list(_words(_answer(by, _picture(bitmap), round(dots))))
    if not words:
        return [], 0.0
    place = partial(_place, page.raw, size, turn // 90)
    letters = sum(len(word.text) for word in words)
    confidence = sum(word.confidence * len(word.text) for word in words) / letters
    return list(_strips(words, place, bitmap.height, scale)), confidence


def _picture(bitmap: Any) -> bytes:  # noqa: ANN401 - of pypdfium2
    """A grey bitmap as a file in the PGM format."""
    pixels = bytes(bitmap.buffer)
    rows = []
    for at in range(0, bitmap.height * bitmap.stride, bitmap.stride):
        rows.append(pixels[at : at + bitmap.width])
    return b"P5 %d %d 255\n" % (bitmap.width, bitmap.height) + b"".join(rows)


def _answer(by: Recognizer, picture: bytes, dots: int) -> str:
    """What Tesseract prints.

    Nothing if it takes too long or fails.
    """
    command = [by.program, "stdin", "stdout", "-l", by.languages, "--dpi", str(dots)]
    end_with_us = None
    if sys.platform.startswith("linux"):
        end_with_us = partial(end_with_parent, os.getpid())
    try:
        answer = subprocess.run(
            [*command, "tsv"],
            input=picture,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS_PER_PAGE,
            # its threads wait for each other on a busy machine
            env={**os.environ, "OMP_THREAD_LIMIT": "1"},
            preexec_fn=end_with_us,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ""
    return answer.stdout.decode("utf-8", "replace")


def _words(answer: str) -> Iterator[_Word]:
    """The words of Tesseract's table.

    Other lines are left out.
    """
    for line in answer.split("\n")[: 10 * _MOST_WORDS]:
        fields = line.split("\t", _FIELDS - 1)
        if len(fields) != _FIELDS or fields[0] != _WORD_LEVEL:
            continue
        text = readable("".join(fields[-1].split()))
        try:
            left, top, width, height = map(int, fields[6:10])
            confidence = float(fields[10])
        except ValueError:
            continue
        if text:
            line_numbers = tuple(fields[2:5])
            right = left + width
            bottom = top + height
            yield _Word(line_numbers, text, left, top, right, bottom, confidence)


def _strips(
    words: Sequence[_Word],
    place: Callable[[_Word], Corners],
    height: int,
    scale: float,
) -> Iterator[Strip]:
    """Lines, cut where a gap is wide.

    Boxes of words are tight, so a line's height depends on its letters. All lines but
    much higher ones have the usual size.
    """
    lines: list[list[_Word]] = []
    for _, line_words in groupby(words[:_MOST_WORDS], key=lambda word: word.line):
        lines.append(list(line_words))
    if not lines:
        return
    usual = median(map(_height, lines))
    for line in lines:
        tall = _height(line)
        size = tall if tall > _TALL * usual else usual
        top = height - min(word.top for word in line)
        bottom = height - max(word.bottom for word in line)
        for part in _parts(line, _GAP * size):
            yield Strip(
                tuple(word.text for word in part),
                tuple(map(place, part)),
                part[0].left / scale,
                bottom / scale,
                part[-1].right / scale,
                top / scale,
                round(size / scale, 1),
                bold=False,
            )


def _height(line: Sequence[_Word]) -> int:
    return max(word.bottom for word in line) - min(word.top for word in line)


def _parts(line: Sequence[_Word], gap: float) -> list[list[_Word]]:
    parts = [[line[0]]]
    for word in line[1:]:
        if word.left - parts[-1][-1].right > gap:
            parts.append([word])
        else:
            parts[-1].append(word)
    return parts


def _place(
    page: Any,  # noqa: ANN401 - of pypdfium2
    size: tuple[int, int],
    quarters: int,
    word: _Word,
) -> Corners:
    """Where a word is on its page, which may be rotated or cropped.

    ``size`` is that of the picture, turned clockwise by quarters.
    """
    from pypdfium2 import raw

    x = ctypes.c_double()
    y = ctypes.c_double()
    edges: list[tuple[float, float]] = []
    for across, down in ((word.left, word.top), (word.right, word.bottom)):
        raw.FPDF_DeviceToPage(page, 0, 0, *size, quarters, across, down, x, y)
        edges.append((x.value, y.value))
    (x0, y0), (x1, y1) = edges
    return (
        round(TENTHS * min(x0, x1)),
        round(TENTHS * min(y0, y1)),
        round(TENTHS * max(x0, x1)),
        round(TENTHS * max(y0, y1)),
    )
