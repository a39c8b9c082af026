"""Tables: merged cells under their columns, and which rows are the header."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import NamedTuple

from spscanner_rag.files.readers.text_builder import TextBuilder

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


class Grid:
    """Puts the cells of rows under their columns: what spans rows is in each, what spans columns in the first."""

    def __init__(self) -> None:
        self._above: list[str] = []
        self._hanging: dict[int, tuple[str, int]] = {}  # column -> text from above, rows for which it goes on
        self._left = _FREE

    def placed(self, cells: Sequence[Cell]) -> list[str]:
        """The texts of the cells of the next row."""
        self._left += _SHARE * sum(len(cell.text) for cell in cells)
        texts: list[str] = []
        for cell in cells:
            self._fill(texts)
            column, text = len(texts), cell.text
            if cell.goes_on and column < len(self._above):
                text = self._taken(self._above[column])
            width = 1 + min(cell.columns - 1, max(0, self._left))
            self._left -= width
            texts += [text, *[""] * (width - 1)]
            for each in range(column, column + width) if cell.rows > 1 else ():
                self._hanging[each] = (texts[each], cell.rows - 1)
        self._fill(texts)
        self._above = texts
        return texts

    def _fill(self, texts: list[str]) -> None:
        while hanging := self._hanging.pop(len(texts), None):
            text, rows = hanging
            if rows > 1 and self._left > 0:
                self._hanging[len(texts)] = (text, rows - 1)
            self._left -= 1
            texts.append(self._taken(text))

    def _taken(self, text: str) -> str:
        self._left -= len(text)
        return text if self._left >= 0 else ""


def add_table(
    built: TextBuilder, rows: Sequence[Row], *, first_row_differs: bool = False, marked_again: bool = False
) -> None:
    """Add the rows of a table, with those as header that are marked so or look so; without deleted rows.

    ``marked_again``: the table may have further headers, each for the rows below it.
    """
    rows = [row for row in rows if not row.deleted]
    grid = Grid()
    placed = [grid.placed(row.cells) for row in rows]
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
