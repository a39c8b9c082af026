"""A builder of one text from paragraphs, headings, fences and tables, and its parts: plain text, merged cells."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import NamedTuple

from spscanner_rag.files.documents import TextFile
from spscanner_rag.text.blocks import LONGEST_READ_WITH, Block

BETWEEN_PARAGRAPHS, BETWEEN_ROWS, BETWEEN_CELLS = "\n\n", "\n", " | "
LONGEST_TITLE = 300  # a longer heading, in characters, is a paragraph in large letters
LONGEST_ROW = 2_000  # a longer row, in characters, lays out a page; its cells are paragraphs
_UNREADABLE = re.compile("[\0\ud800-\udfff]")


def readable(text: str) -> str:
    """The text with U+FFFD for zero characters and lone surrogates, which no file can hold."""
    return _UNREADABLE.sub("\ufffd", text)


def decoded(data: bytes) -> str:
    """UTF-8 without its byte order mark, or UTF-16 with one; ``ValueError`` for all else, binary data included."""
    encoding = "UTF-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "UTF-8"
    try:
        zero = data.find(b"\0") if encoding == "UTF-8" else -1
        text = data.decode("utf-16" if encoding == "UTF-16" else "utf-8-sig") if zero < 0 else ""
    except UnicodeDecodeError as error:
        raise ValueError(
            f"got byte 0x{data[error.start]:02x} at {error.start}, not {encoding}; expected UTF-8 text: "
            "convert text in another encoding, for example with `iconv -f LATIN1 -t UTF-8`"
        ) from None
    if (zero := max(zero, text.find("\0"))) >= 0:
        raise ValueError(
            f"got binary data (a zero byte at {zero}); expected UTF-8 text, HTML, Markdown, "
            "PDF or DOCX: convert it first"
        )
    return text


class TextBuilder:
    """Collects the parts of a text, in order."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._blocks: list[Block] = []
        self._length = 0

    def _append(self, text: str, gap: str) -> tuple[int, int]:
        if self._length:
            self._parts.append(gap)
            self._length += len(gap)
        start = self._length
        self._parts.append(text)
        self._length += len(text)
        return start, self._length

    def paragraph(self, text: str) -> None:
        """Add a paragraph."""
        self._append(text, BETWEEN_PARAGRAPHS)

    def heading(self, text: str, level: int) -> None:
        """Add a heading on one line."""
        title = " ".join(text.split())
        if len(title) > LONGEST_TITLE:
            self.paragraph(text)
        else:
            span = self._append(title, BETWEEN_PARAGRAPHS)
            self._blocks.append(Block(*span, "heading", level=level, title=title))

    def fence(self, text: str) -> None:
        """Add text that is no prose."""
        self._blocks.append(Block(*self._append(text, BETWEEN_PARAGRAPHS), "fence"))

    def turn(self, label: str, text: str, *, after: str) -> None:
        """Add what somebody says, behind a label of time and speaker."""
        start, end = self._append(f"{label}{after}{text}", BETWEEN_ROWS)
        self._blocks.append(
            Block(start, end, "turn", header=(start, start + len(label + after.rstrip())), title=label)
        )

    def table(self, rows: Sequence[Sequence[str]], is_header: Sequence[bool], *, first_names: bool) -> None:
        """Add the rows of a table; cells of one that is no row of data are paragraphs.

        Headers that follow each other are one, for the rows below. ``first_names``: the first row is read with
        the others, though it is none.
        """
        header: tuple[int, int] | None = None
        gap, last_is_header = BETWEEN_PARAGRAPHS, False
        for number, (cells, heads) in enumerate(zip(rows, is_header, strict=True)):
            text = BETWEEN_CELLS.join(cells).strip()
            if sum(map(bool, cells)) < 2 or len(text) > LONGEST_ROW:
                for cell in filter(None, cells):
                    self.paragraph(cell)
                continue
            start, end = self._append(text, gap)
            gap = BETWEEN_ROWS
            if heads:
                if last_is_header and header and end - header[0] <= LONGEST_READ_WITH:
                    start = header[0]
                    self._blocks.pop()
                header = (start, end)
                self._blocks.append(Block(start, end, "header"))
            else:
                self._blocks.append(Block(start, end, "row", header=header))
            last_is_header = heads
            if first_names and not number:
                header = (start, end)

    def converted(self) -> TextFile:
        """The text and its blocks; a header without rows is a row."""
        used = {block.header for block in self._blocks}
        blocks = (
            block._replace(kind="row")
            if block.kind == "header" and (block.start, block.end) not in used
            else block
            for block in self._blocks
        )
        return TextFile("", readable("".join(self._parts)), tuple(blocks))


MOST_COLUMNS, MOST_ROWS = 1_000, 65_534
"""That a cell may span, as HTML says."""

_LONGEST_NAME = 60  # of a column, in characters
_FEWEST_NAMED = 3
"""A first row without a mark may name columns if there are so many: two are often label and value."""

_WITH_NUMBER = re.compile(r"\d")
_NUMBERED = re.compile(r"(?:19|20)\d\d|[^\W\d]+[ _]?\d")  # a year, or a name as in "line 2"
_FREE, _SHARE = 60, 8
"""Merged cells may fill so many characters in a table, and so many times the length of its text."""


class Cell(NamedTuple):
    """A cell of a row as its file has it."""

    text: str
    columns: int = 1  # that it spans
    rows: int = 1
    goes_on: bool = False  # it is the rest of the cell above


@dataclass(slots=True)
class Row:
    """A row as its file has it."""

    cells: list[Cell] = field(default_factory=list)
    marked: bool = False  # as a header
    strong: bool = True  # bold or shaded
    deleted: bool = False


def _placed(rows: Sequence[Row]) -> list[list[str]]:
    """The cells of rows under their columns: what spans rows is in each, what spans columns in the first."""
    placed: list[list[str]] = []
    hanging: dict[int, tuple[str, int]] = {}  # column -> text from above, rows for which it goes on
    left = _FREE
    for row in rows:
        left += _SHARE * sum(len(cell.text) for cell in row.cells)
        texts: list[str] = []
        for cell in (*row.cells, None):
            while found := hanging.pop(len(texts), None):
                text, more = found
                if more > 1 and left > 0:
                    hanging[len(texts)] = (text, more - 1)
                left -= 1 + len(text)
                texts.append(text if left >= 0 else "")
            if cell is None:
                break
            column, text = len(texts), cell.text
            if cell.goes_on and placed and column < len(placed[-1]):
                left -= len(placed[-1][column])
                text = placed[-1][column] if left >= 0 else ""
            width = 1 + min(cell.columns - 1, max(0, left))
            left -= width
            texts += [text, *[""] * (width - 1)]
            if cell.rows > 1:
                hanging |= {each: (texts[each], cell.rows - 1) for each in range(column, column + width)}
        placed.append(texts)
    return placed


def add_table(
    built: TextBuilder, rows: Sequence[Row], *, first_row_differs: bool = False, marked_again: bool = False
) -> None:
    """Add the rows of a table, with those as header that are marked so or look so; without deleted rows.

    ``marked_again``: the table may have further headers, each for the rows below it.
    """
    rows = [row for row in rows if not row.deleted]
    placed = _placed(rows)
    marked = len(list(takewhile(lambda row: row.marked, rows)))
    # a table of nothing but headers has none
    headers = (marked or _strong(rows, placed) or int(first_row_differs)) % max(len(rows), 1)
    is_header = [number < headers or (marked_again and row.marked) for number, row in enumerate(rows)]
    built.table(placed, is_header, first_names=not headers and looks_named(placed))


def _strong(rows: Sequence[Row], placed: Sequence[Sequence[str]]) -> int:
    """How many rows look like a header: those with merged cells, and the next; but "Name:" is label and value."""
    if all(row.strong for row in rows):
        return 0
    for number, (row, texts) in enumerate(zip(rows, placed, strict=True)):
        if not row.strong or not any(texts) or any(text.endswith(":") for text in texts):
            return number
        if all(cell.columns == cell.rows == 1 for cell in row.cells):
            return number + 1
    return 0


def looks_named(rows: Sequence[Sequence[str]], fewest: int = _FEWEST_NAMED) -> bool:
    """True if the first row may name the columns of the others: short words, no numbers but years."""
    first = rows[0] if len(rows) > 1 else ()
    return (
        len(set(first)) == len(first) >= fewest
        and all(0 < len(text) <= _LONGEST_NAME for text in first)
        and not any(_WITH_NUMBER.search(text) and not _NUMBERED.fullmatch(text) for text in first)
        and not all(map(_WITH_NUMBER.search, first))
    )
