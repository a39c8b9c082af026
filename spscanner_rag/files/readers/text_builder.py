"""Builds one text from paragraphs, headings, fences and tables.

Decodes plain text, and places merged cells.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import NamedTuple

from spscanner_rag.files.documents import PlaceStart, TextFile
from spscanner_rag.files.formats import formats_in_words
from spscanner_rag.text.block_segmentation import LONGEST_READ_WITH
from spscanner_rag.text.blocks import Block

BETWEEN_PARAGRAPHS = "\n\n"
BETWEEN_ROWS = "\n"
BETWEEN_CELLS = " | "
# characters; a longer heading is taken as a paragraph in large letters
LONGEST_TITLE = 300
# characters; a longer row is for page layout, so its cells become paragraphs
LONGEST_ROW = 2_000
_UNREADABLE = re.compile("[\0\ud800-\udfff]")


def readable(text: str) -> str:
    """The text with U+FFFD in place of characters that no text file can contain.

    These are zero characters and lone surrogates.
    """
    return _UNREADABLE.sub("\ufffd", text)


def decoded(data: bytes) -> str:
    """Decode UTF-8, with or without a byte order mark, or UTF-16 with one.

    ``ValueError`` for all else.
    """
    text = ""
    zero = -1
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "UTF-16"
        codec = "utf-16"
    else:
        encoding = "UTF-8"
        codec = "utf-8-sig"
        zero = data.find(b"\0")
    try:
        if zero < 0:
            text = data.decode(codec)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"got byte 0x{data[error.start]:02x} at {error.start}, not {encoding};"
            " expected UTF-8 text: convert text in another encoding, for example with"
            " `iconv -f LATIN1 -t UTF-8`"
        ) from None
    zero = max(zero, text.find("\0"))
    if zero >= 0:
        raise ValueError(
            f"got binary data (a zero byte at {zero}); expected UTF-8"
            f" {formats_in_words()}: convert it first"
        )
    return text


class TextBuilder:
    """Collects the parts of a text in order."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._blocks: list[Block] = []
        self._places: list[PlaceStart] = []
        self._notes: list[str] = []
        self._place_to_begin = ""
        self._headings_end = False
        self._length = 0
        self.metadata: dict[str, str] = {}

    def _append(self, text: str, gap: str) -> tuple[int, int]:
        if self._length:
            self._parts.append(gap)
            self._length += len(gap)
        start = self._length
        if self._place_to_begin:
            self._places.append(PlaceStart(start, self._place_to_begin))
            self._place_to_begin = ""
        if self._headings_end:
            self._blocks.append(Block(start, start, "heading", level=1))
            self._headings_end = False
        self._parts.append(text)
        self._length += len(text)
        return start, self._length

    def item(self, text: str) -> None:
        """Add a separate paragraph, such as an item of a list."""
        gap = BETWEEN_PARAGRAPHS
        if self._blocks and not self._place_to_begin:
            last = self._blocks[-1]
            if last.end == self._length and last.kind in ("item", "heading"):
                gap = BETWEEN_ROWS
        self._blocks.append(Block(*self._append(text, gap), "item"))

    def place(self, name: str) -> None:
        """Say where in the file the text comes from that is added next.

        It holds until another place begins.
        """
        self._place_to_begin = name

    def end_headings(self) -> None:
        """Say that what is added next is below no heading so far."""
        self._headings_end = bool(self._length)

    def place_at(self, offset: int, name: str) -> None:
        """Say where the text comes from that begins at an offset of the last part."""
        self._places.append(PlaceStart(offset, name))

    def next_start(self) -> int:
        """The offset at which the next paragraph begins."""
        return self._length + (len(BETWEEN_PARAGRAPHS) if self._length else 0)

    def note(self, line: str) -> None:
        """Say what of the file is not in the text."""
        self._notes.append(line)

    def row(self, text: str, header: tuple[int, int] | None = None) -> tuple[int, int]:
        """Add a record, such as a row of a table, and return its span.

        ``header`` is the span of the row that names its columns.
        """
        gap = BETWEEN_PARAGRAPHS
        if self._blocks and self._blocks[-1].end == self._length:
            gap = BETWEEN_ROWS if self._blocks[-1].kind == "row" else gap
        start, end = self._append(text, gap)
        self._blocks.append(Block(start, end, "row", header=header))
        return start, end

    def document(self, document: TextFile) -> None:
        """Add the text of a document with its blocks, notes and places.

        Levels of headings stay. Nothing is added for a document without text.
        """
        self._notes += document.notes
        if not document.text.strip():
            return
        start, _ = self._append(document.text, BETWEEN_PARAGRAPHS)
        for block in document.blocks:
            header = block.header
            if header is not None:
                header = (header[0] + start, header[1] + start)
            moved = block._replace(
                start=block.start + start, end=block.end + start, header=header
            )
            self._blocks.append(moved)
        for place in document.places:
            self._places.append(PlaceStart(place.start + start, place.name))

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
        """Add text that is not prose, such as code."""
        self._blocks.append(Block(*self._append(text, BETWEEN_PARAGRAPHS), "fence"))

    def turn(self, label: str, text: str, *, after: str) -> None:
        """Add a speaker's words after a label with time and speaker."""
        start, end = self._append(f"{label}{after}{text}", BETWEEN_ROWS)
        header = (start, start + len(label + after.rstrip()))
        self._blocks.append(Block(start, end, "turn", header=header, title=label))

    def table(
        self,
        rows: Sequence[Sequence[str]],
        is_header: Sequence[bool],
        *,
        naming_rows: int = 0,
    ) -> None:
        """Add the rows of a table.

        The cells of a row that is not data become paragraphs.

        Consecutive header rows are one header for the rows below. The first
        ``naming_rows`` are no headers, as that is only a guess, but the other rows are
        read with them as if they were.
        """
        header: tuple[int, int] | None = None
        gap = BETWEEN_PARAGRAPHS
        last_is_header = False
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
                header_of_row = None if number < naming_rows else header
                self._blocks.append(Block(start, end, "row", header=header_of_row))
            last_is_header = heads
            if number < naming_rows:
                if header and end - header[0] <= LONGEST_READ_WITH:
                    start = header[0]
                header = (start, end)

    def converted(self) -> TextFile:
        """Return the text and its blocks.

        A header without rows becomes a row.
        """
        headers_of_rows = {block.header for block in self._blocks}
        blocks = []
        for block in self._blocks:
            span = (block.start, block.end)
            if block.kind == "header" and span not in headers_of_rows:
                blocks.append(block._replace(kind="row"))
            else:
                blocks.append(block)
        return TextFile(
            "",
            readable("".join(self._parts)),
            tuple(blocks),
            notes=tuple(self._notes),
            places=tuple(self._places),
            metadata=self.metadata,
        )


MOST_COLUMNS = 1_000
MOST_ROWS = 65_534
"""The most that a cell may span, by the HTML standard."""

_LONGEST_NAME = 60  # characters of a column's name
_FEWEST_NAMED = 3
"""An unmarked first row may name columns if there are at least so many: two are
often label and value."""

_WITH_NUMBER = re.compile(r"\d")
# a year, or a name as in "line 2"
_NUMBERED = re.compile(r"(?:19|20)\d\d|[^\W\d]+[ _]?\d")
_FREE = 60
_SHARE = 8
"""Merged cells may add this many characters to a table, plus this many times the
length of its text."""


class Cell(NamedTuple):
    """A cell of a row, as it is in the file."""

    text: str
    columns: int = 1  # that the cell spans
    rows: int = 1
    goes_on: bool = False  # whether it continues the cell above


@dataclass(slots=True)
class Row:
    """A row, as it is in the file."""

    cells: list[Cell] = field(default_factory=list)
    marked: bool = False  # marked as a header
    strong: bool = True  # bold or shaded
    deleted: bool = False


def _placed(rows: Sequence[Row]) -> list[list[str]]:
    """The cells of rows by column.

    A cell that spans rows is repeated; one that spans columns is in the first.
    """
    rows_of_texts: list[list[str]] = []
    # column -> text from above, number of rows that still repeat it
    hanging: dict[int, tuple[str, int]] = {}
    left = _FREE
    for row in rows:
        left += _SHARE * sum(len(cell.text) for cell in row.cells)
        texts: list[str] = []
        for cell in (*row.cells, None):
            while repeated := hanging.pop(len(texts), None):
                text, more = repeated
                if more > 1 and left > 0:
                    hanging[len(texts)] = (text, more - 1)
                left -= 1 + len(text)
                texts.append(text if left >= 0 else "")
            if cell is None:
                break
            column = len(texts)
            text = cell.text
            above = rows_of_texts[-1] if rows_of_texts else []
            if cell.goes_on and column < len(above):
                left -= len(above[column])
                text = above[column] if left >= 0 else ""
            width = 1 + min(cell.columns - 1, max(0, left))
            left -= width
            texts += [text, *[""] * (width - 1)]
            if cell.rows > 1:
                for spanned in range(column, column + width):
                    hanging[spanned] = (texts[spanned], cell.rows - 1)
        rows_of_texts.append(texts)
    return rows_of_texts


def add_table(
    built: TextBuilder,
    rows: Sequence[Row],
    *,
    first_row_differs: bool = False,
    marked_again: bool = False,
) -> None:
    """Add a table's rows, except deleted ones.

    Its header is the rows that are marked as one. Rows that only look like one are read
    with the others, and are rows as well.

    ``marked_again``: marked rows further down are headers for the rows below them.
    """
    rows = [row for row in rows if not row.deleted]
    texts = _placed(rows)
    headers = len(list(takewhile(lambda row: row.marked, rows)))
    guessed = 0
    if not headers:
        guessed = _strong(rows, texts) or int(first_row_differs)
    if headers == len(rows):  # if every row is a header, none is
        headers = 0
    if guessed in (0, len(rows)):
        guessed = int(not headers and looks_named(texts))
    is_header = []
    for number, row in enumerate(rows):
        is_header.append(number < headers or (marked_again and row.marked))
    built.table(texts, is_header, naming_rows=guessed)


def _strong(rows: Sequence[Row], texts_of_rows: Sequence[Sequence[str]]) -> int:
    """Count the rows that look like a header.

    They are bold, up to the first without merged cells, before any "Name:".
    """
    if all(row.strong for row in rows):
        return 0
    for number, (row, texts) in enumerate(zip(rows, texts_of_rows, strict=True)):
        if (
            not row.strong
            or not any(texts)
            or any(text.endswith(":") for text in texts)
        ):
            return number
        if all(cell.columns == cell.rows == 1 for cell in row.cells):
            return number + 1
    return 0


def looks_named(rows: Sequence[Sequence[str]], fewest: int = _FEWEST_NAMED) -> bool:
    """True if the first row may name the columns.

    It has short distinct texts, without numbers except years.
    """
    first = rows[0] if len(rows) > 1 else ()
    if len(first) < fewest or len(set(first)) < len(first):
        return False
    for text in first:
        if not 0 < len(text) <= _LONGEST_NAME:
            return False
        if _WITH_NUMBER.search(text) and not _NUMBERED.fullmatch(text):
            return False
    return not all(map(_WITH_NUMBER.search, first))
