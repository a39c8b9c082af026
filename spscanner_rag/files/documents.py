"""A document read from a file: its text, pages, headings and other blocks."""

import re
import zlib
from base64 import b64encode
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.text.blocks import Block
from spscanner_rag.text.visible_text import shown
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
        """The page's label, with its number where that is another.

        Examples
        --------
        >>> PageStart(0, 12, "12").name
        'page 12'
        >>> PageStart(0, 4, "iv").name
        'page iv (4)'
        """
        if self.label == str(self.number):
            return f"page {self.label}"
        return f"page {self.label} ({self.number})"


class PlaceStart(NamedTuple):
    """Where a part of a file that has no pages begins in the text."""

    start: int
    name: str  # as a person finds it: "slide 4", "sheet Costs, cells A3:D3"


class _Titles(NamedTuple):
    """The titles from one heading, or turn of a conversation, to the next."""

    start: int
    titles: tuple[str, ...]  # outermost first, its own last
    end: int  # of a turn: where its title stops to count


def block_of(values: Sequence[Any]) -> Block:
    """Make a block from its values in JSON."""
    start, end, kind, header, *further = values
    header_span = header and (header[0], header[1])
    return Block(start, end, kind, header_span, *further)


@dataclass(frozen=True)
class TextFile:
    r"""A document read from a file.

    Parameters
    ----------
    path : str
        As the user gave it, "-" for standard input. A reader leaves it empty.
    text : str
        What is scanned. For a text or Markdown file, it is the decoded text without its
        byte order mark and with no other change, so ``\r\n`` stays; for other files, it
        is the text that the reader extracted.
    blocks : tuple of Block
        Headings, list items, fences and rows of tables, and markup, in order.
    pages : tuple of PageStart
        Empty for files without pages.
    notes : tuple of str
        A line for each part of the file that could not be read.
    words : array, optional
        For a PDF, the words and their places.
    places : tuple of PlaceStart
        The rows of a sheet, the slides, chapters, cells, records or lines of a mail.
        Empty for files that have none.
    metadata : mapping of str to str
        What a mail or a book says about itself, such as its sender or its author.

    Examples
    --------
    >>> document = TextFile("notes.txt", "It rained.\nThe keeper left.")
    >>> document.position(document.text.index("keeper"))
    (2, 5)
    """

    path: str
    text: str
    blocks: tuple[Block, ...] = ()
    pages: tuple[PageStart, ...] = ()
    notes: tuple[str, ...] = ()
    words: Words | None = field(default=None, compare=False, repr=False)
    places: tuple[PlaceStart, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def _line_starts(self) -> NDArray[np.int64]:
        line_ends = [match.end() for match in _LINE_BREAK.finditer(self.text)]
        return np.array([0, *line_ends], dtype=np.int64)

    @cached_property
    def _markup(self) -> tuple[Block, ...]:
        return tuple(block for block in self.blocks if block.kind == "markup")

    @cached_property
    def _records(self) -> tuple[Block, ...]:
        """The blocks but markup, which are disjoint."""
        if not self._markup:
            return self.blocks
        return tuple(block for block in self.blocks if block.kind != "markup")

    def shown(self, start: int, end: int) -> str:
        """The text of a span without markup, which is neither read nor shown.

        Examples
        --------
        >>> markup = (Block(0, 3, "markup"), Block(10, 14, "markup"))
        >>> TextFile("rain.md", "<b>It rain</b>ed.", markup).shown(0, 17)
        'It rained.'
        """
        return shown(self.text, start, end, self._markup)

    @cached_property
    def _headings(self) -> list[_Titles]:
        """The titles of each heading and turn, in order."""
        headings: list[_Titles] = []
        path: list[Block] = []
        end_of_text = len(self.text) + 1
        for block in self.blocks:
            if block.kind == "heading":
                while path and path[-1].level >= block.level:
                    path.pop()
                if block.title:  # else the headings above end here
                    path.append(block)
                titles = tuple(heading.title for heading in path)
                headings.append(_Titles(block.start, titles, end_of_text))
            elif block.kind == "turn":
                titles = (*(heading.title for heading in path), block.title)
                headings.append(_Titles(block.start, titles, block.end))
        return headings

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of a character, both counted from 1.

        A line ends at LF, CR LF or CR.
        """
        line = int(np.searchsorted(self._line_starts, offset, side="right"))
        return line, offset - int(self._line_starts[line - 1]) + 1

    def page(self, offset: int) -> PageStart | None:
        """The page that a character is on, or None for a file without pages."""
        if not self.pages:
            return None
        number = bisect_right(self.pages, offset, key=lambda page: page.start)
        return self.pages[max(0, number - 1)]

    def place_name(self, offset: int) -> str:
        """The name of the place of a character, empty for a file without places.

        Examples
        --------
        >>> places = (PlaceStart(0, "slide 1"), PlaceStart(11, "slide 2"))
        >>> document = TextFile("talk.pptx", "It rained. No.", places=places)
        >>> document.place_name(11)
        'slide 2'
        """
        number = bisect_right(self.places, offset, key=lambda place: place.start)
        return self.places[number - 1].name if number else ""

    def headings(self, offset: int) -> tuple[str, ...]:
        """The headings above a character, outermost first.

        A turn's time and speaker follow them. A row of a table without headings has its
        number and its header instead.
        """
        number = bisect_right(self._headings, offset, key=lambda heading: heading.start)
        titles: tuple[str, ...] = ()
        if number:
            heading = self._headings[number - 1]
            titles = heading.titles
            if offset >= heading.end:
                titles = titles[:-1]
        return titles or self._row(offset)

    def _row(self, offset: int) -> tuple[str, ...]:
        """Number (1 is the header) and header of the table row at a character."""
        number = self._block_number(offset)
        if number < 0:
            return ()
        block = self._records[number]
        if block.kind != "row" or block.header is None or offset >= block.end:
            return ()
        header_number = self._block_number(block.header[0])
        header = " ".join(self.shown(*block.header).split())
        return (f"row {number - header_number + 1}: {header}",)

    def _block_number(self, offset: int) -> int:
        """The last block that begins at or before a character, -1 if none does."""
        return bisect_right(self._records, offset, key=lambda block: block.start) - 1

    def section(self, offset: int) -> str:
        """The page, place or innermost heading of a character, for display.

        Empty if there is none of them.
        """
        page = self.page(offset)
        if page is not None:
            return page.name
        if place_name := self.place_name(offset):
            return place_name
        headings = self.headings(offset)
        return headings[-1][:LONGEST_SECTION] if headings else ""

    def where(self, offset: int) -> str:
        r"""The page or place, else line and column, then the innermost heading.

        Examples
        --------
        >>> TextFile("notes.txt", "It rained.\nThe keeper left.").where(11)
        '2:1'
        """
        page = self.page(offset)
        if page is not None:
            place = page.name
        else:
            line_and_column = ":".join(map(str, self.position(offset)))
            place = self.place_name(offset) or line_and_column
        headings = self.headings(offset)
        if not headings:
            return place
        return f"{place} · {headings[-1][:LONGEST_SECTION]}"

    def boxes(self, start: int, end: int) -> tuple[Box, ...]:
        """Where a span is on the pages of a PDF, as a rectangle for each line.

        Empty for other files.
        """
        if self.words is None:
            return ()
        return boxes_of(self.words, start, end, self._page_number)

    def _page_number(self, offset: int) -> int:
        page = self.page(offset)
        return page.number if page else 1

    def page_metadata(self, page: PageStart) -> dict[str, str]:
        """Metadata, without the page number, for a framework's document of a page.

        The page's label and, for a PDF, the boxes of its words, a string that no
        language model should get. The text is that of `page_texts`.
        """
        metadata = {"page_label": page.label}
        if self.words is not None:
            stop = len(self.text)
            for other_page in self.pages:
                if other_page.start > page.start:
                    stop = other_page.start
                    break
            first, last = np.searchsorted(self.words[:, 0], (page.start, stop))
            # start and end count from the beginning of the page; places stay
            shift = np.array([page.start, page.start, 0, 0, 0, 0], np.int32)
            page_words = self.words[first:last] - shift
            metadata[WORDS_KEY] = packed(page.number, page_words)
        return metadata

    def place(self, start: int, end: int) -> dict[str, object]:
        """Describe a span for JSON: start, end, line and column.

        If it has them, also page, page_number, place, boxes and headings.
        """
        line, column = self.position(start)
        place: dict[str, object] = {
            "start": start,
            "end": end,
            "line": line,
            "column": column,
        }
        page = self.page(start)
        if page is not None:
            place["page"] = page.label
            place["page_number"] = page.number
        if place_name := self.place_name(start):
            place["place"] = place_name
        boxes = self.boxes(start, end)
        if boxes:
            place["boxes"] = [list(box) for box in boxes]
        headings = self.headings(start)
        if headings or self._headings:
            place["headings"] = list(headings)
        return place

    def page_texts(self) -> list[tuple[PageStart, str]]:
        """Each page with its text, for frameworks that take a document page by page.

        Empty without pages.
        """
        texts: list[tuple[PageStart, str]] = []
        stops = [page.start for page in self.pages[1:]]
        stops.append(len(self.text))
        for page, stop in zip(self.pages, stops, strict=False):
            texts.append((page, self.text[page.start : stop]))
        return texts


def name_of(path: str) -> str:
    """The name of a document in messages and views.

    Examples
    --------
    >>> name_of("treaty.txt"), name_of("-")
    ('treaty.txt', 'standard input')
    """
    return "standard input" if path == STANDARD_INPUT else path


def packed(page: int, words: Words) -> str:
    """Encode the words of a page as a short string.

    It has the differences from word to word, compressed.
    """
    steps = np.diff(words, axis=0, prepend=0).T.astype("<i4")
    return f"{page}:{b64encode(zlib.compress(steps.tobytes())).decode()}"
