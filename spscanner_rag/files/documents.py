"""A document read from a file: its text, pages, headings and other blocks."""

import re
import zlib
from base64 import b64encode
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.text.blocks import Block
from spscanner_rag.text.word_boxes import WORDS_KEY, Box, Words, boxes_of

STANDARD_INPUT = "-"
LONGEST_SECTION = 80  # most characters of a heading shown beside a position
_LINE_BREAK = re.compile("\r\n|\r|\n")


class PageStart(NamedTuple):
    """The beginning of a page in the text."""

    start: int
    number: int  # from 1
    label: str  # the name that a viewer shows, such as "iv"; usually the number

    @property
    def name(self) -> str:
        """The page's name: "page 12", or "page iv (4)" if the label is not the number."""
        return f"page {self.label}" + (
            "" if self.label == str(self.number) else f" ({self.number})"
        )


def block_of(values: Sequence[Any]) -> Block:
    """Make a block from its values in JSON."""
    start, end, kind, header, *rest = values
    return Block(start, end, kind, header and (header[0], header[1]), *rest)


@dataclass(frozen=True)
class TextFile:
    r"""A document read from a file.

    ``text`` is what is scanned. For a text or Markdown file, it is the decoded text
    without its byte order mark and with no other change, so ``\r\n`` stays; for other
    files, it is the text that the reader extracted.
    """

    path: str  # as the user gave it, "-" for standard input; a reader leaves it empty
    text: str
    blocks: tuple[
        Block, ...
    ] = ()  # headings, list items, fences and rows of tables, in order
    pages: tuple[PageStart, ...] = ()  # empty for files without pages
    notes: tuple[
        str, ...
    ] = ()  # a line for each part of the file that could not be read
    words: Words | None = field(default=None, compare=False, repr=False)  # for a PDF

    @cached_property
    def _line_starts(self) -> NDArray[np.int64]:
        ends = [match.end() for match in _LINE_BREAK.finditer(self.text)]
        return np.array([0, *ends], dtype=np.int64)

    @cached_property
    def _headings(self) -> list[tuple[int, tuple[str, ...], int]]:
        """For each heading or turn: its start, the titles above it and its own, and the end of a turn."""
        found: list[tuple[int, tuple[str, ...], int]] = []
        path: list[Block] = []
        for block in self.blocks:
            if block.kind == "heading":
                while path and path[-1].level >= block.level:
                    path.pop()
                path.append(block)
                found.append(
                    (
                        block.start,
                        tuple(each.title for each in path),
                        len(self.text) + 1,
                    )
                )
            elif block.kind == "turn":
                found.append(
                    (
                        block.start,
                        (*(each.title for each in path), block.title),
                        block.end,
                    )
                )
        return found

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of a character, both counted from 1.

        A line ends at LF, CR LF or CR.
        """
        line = int(np.searchsorted(self._line_starts, offset, side="right"))
        return line, offset - int(self._line_starts[line - 1]) + 1

    def page(self, offset: int) -> PageStart | None:
        """The page that a character is on; None for a file without pages."""
        if not self.pages:
            return None
        return self.pages[
            max(0, bisect_right(self.pages, offset, key=lambda page: page.start) - 1)
        ]

    def headings(self, offset: int) -> tuple[str, ...]:
        """The headings above a character, outermost first, then a turn's time and speaker; else a row's header."""
        number = bisect_right(self._headings, offset, key=lambda heading: heading[0])
        _, titles, end = self._headings[number - 1] if number else (0, (), 0)
        return (titles if offset < end else titles[:-1]) or self._row(offset)

    def _row(self, offset: int) -> tuple[str, ...]:
        """Number and header of the table row at a character; the header is row 1."""
        number = bisect_right(self.blocks, offset, key=lambda block: block.start) - 1
        block = self.blocks[number] if number >= 0 else None
        if (
            block is None
            or block.kind != "row"
            or block.header is None
            or offset >= block.end
        ):
            return ()
        first = (
            bisect_right(self.blocks, block.header[0], key=lambda other: other.start)
            - 1
        )
        return (
            (
                f"row {number - first + 1}:"
                f" {' '.join(self.text[slice(*block.header)].split())}"
            ),
        )

    def section(self, offset: int) -> str:
        """The page, else the innermost heading, of a character, for display.

        Empty if there is neither.
        """
        page, headings = self.page(offset), self.headings(offset)
        return page.name if page else headings[-1][:LONGEST_SECTION] if headings else ""

    def where(self, offset: int) -> str:
        """Page, else line and column, then the innermost heading: "page 12 · Rent", "31:5 · Rent"."""
        page, headings = self.page(offset), self.headings(offset)
        place = page.name if page else ":".join(map(str, self.position(offset)))
        return " · ".join(
            [place, *(title[:LONGEST_SECTION] for title in headings[-1:])]
        )

    def boxes(self, start: int, end: int) -> tuple[Box, ...]:
        """Where a span is on the pages of a PDF, as a rectangle for each line.

        Empty for other files.
        """
        if self.words is None:
            return ()
        return boxes_of(
            self.words,
            start,
            end,
            lambda at: page.number if (page := self.page(at)) else 1,
        )

    def page_metadata(self, page: PageStart) -> dict[str, str]:
        """Metadata, without the page number, for a framework's document of a page of `page_texts`.

        The page's label and, for a PDF, the boxes of its words, a string that no
        language model should get.
        """
        found = {"page_label": page.label}
        if self.words is not None:
            stop = next(
                (other.start for other in self.pages if other.start > page.start),
                len(self.text),
            )
            first, last = np.searchsorted(self.words[:, 0], (page.start, stop))
            own = self.words[first:last] - np.array(
                [page.start] * 2 + [0] * 4, np.int32
            )
            found[WORDS_KEY] = packed(page.number, own)
        return found

    def place(self, start: int, end: int) -> dict[str, object]:
        """A span for JSON: start, end, line, column, and page, page_number, boxes and headings if it has them."""
        line, column = self.position(start)
        found: dict[str, object] = {
            "start": start,
            "end": end,
            "line": line,
            "column": column,
        }
        if page := self.page(start):
            found |= {"page": page.label, "page_number": page.number}
        if boxes := self.boxes(start, end):
            found["boxes"] = [list(box) for box in boxes]
        if (headings := self.headings(start)) or self._headings:
            found["headings"] = list(headings)
        return found

    def page_texts(self) -> list[tuple[PageStart, str]]:
        """Each page with its text, for frameworks that take a document page by page.

        Empty without pages.
        """
        stops = [page.start for page in self.pages[1:]] + [len(self.text)]
        return [
            (page, self.text[page.start : stop])
            for page, stop in zip(self.pages, stops, strict=False)
        ]


def name_of(path: str) -> str:
    """The name of a document in messages and views: its path, or "standard input"."""
    return "standard input" if path == STANDARD_INPUT else path


def packed(page: int, words: Words) -> str:
    """Encode the words of a page as a short string: differences from word to word, compressed."""
    steps = np.diff(words, axis=0, prepend=0).T.astype("<i4")
    return f"{page}:{b64encode(zlib.compress(steps.tobytes())).decode()}"
