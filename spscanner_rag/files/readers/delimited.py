"""Reads tables of values separated by commas or tabs unchanged, with their rows."""

import csv
import re
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.html_values import html_markup_of
from spscanner_rag.files.readers.text_builder import decoded, looks_named
from spscanner_rag.text.blocks import Block, in_order
from spscanner_rag.text.turns import LINE

_DELIMITERS = ",;\t|"
_LOOKED_AT = 20  # lines that decide the delimiter, and rows that decide the header
_MOST_LINES = 50  # lines of a row; a longer one has an unclosed quotation mark
_IDENTIFIER = re.compile(r"[a-z][a-z0-9_.-]*")
_NUMBER = re.compile(r"[\s$€£+(-]*\d")

Row = tuple[int, int, Sequence[str]]  # start, end, cells


def read_table(data: bytes) -> TextFile:
    """Read a CSV or TSV file.

    ``ValueError`` if it is not UTF-8 or UTF-16.
    """
    text = decoded(data)
    rows = _rows(text)
    looked_at = list(islice(rows, _LOOKED_AT))
    # also Excel's "sep=;"
    titles = list(takewhile(lambda row: sum(map(bool, row[2])) < 2, looked_at))
    first = looked_at[len(titles) :]
    header = None
    if first and looks_named([row[2] for row in first], fewest=2):
        header = first[0][:2]
    blocks = [Block(start, end, "row") for start, end, _ in titles]
    if header and _differs([row[2] for row in first]):
        blocks.append(Block(*header, "header"))
        del first[0]
    for part in (first, rows):
        for start, end, _ in part:
            row_header = None if (start, end) == header else header
            blocks.append(Block(start, end, "row", header=row_header))
    if markup := list(html_markup_of(text)):
        blocks = in_order([*blocks, *markup])
    return TextFile("", text, tuple(blocks))


def _rows(text: str) -> Iterator[Row]:
    """Yield the rows.

    After one that cannot be parsed, every line is a row.
    """
    read_to = 0

    def lines() -> Iterator[str]:
        nonlocal read_to
        for line in LINE.finditer(text):
            read_to = line.end()
            yield line[0]

    start = 0
    last_line = 0
    first = [
        line[0] for line in islice(LINE.finditer(text), _LOOKED_AT) if line[0].strip()
    ]
    counts = {sign: sorted(line.count(sign) for line in first) for sign in _DELIMITERS}
    # the delimiter that occurs most often in most rows
    table = csv.reader(
        lines(),
        delimiter=max(counts, key=lambda sign: counts[sign][len(first) // 4 :][:1]),
    )
    try:
        for cells in table:
            if table.line_num - last_line > _MOST_LINES:
                raise csv.Error("a quotation mark is not closed")
            yield from _row(text, start, read_to, cells)
            start = read_to
            last_line = table.line_num
    except csv.Error:
        for line in LINE.finditer(text, start):
            yield from _row(text, line.start(), line.end(), (line[0],))


def _row(text: str, start: int, end: int, cells: Sequence[str]) -> Iterator[Row]:
    content = text[start:end]
    if any(map(str.strip, cells)):
        yield (
            start + len(content) - len(content.lstrip()),
            start + len(content.rstrip()),
            cells,
        )


def _differs(rows: Sequence[Sequence[str]]) -> bool:
    """True if a column has numbers below a name, or words below an identifier.

    An identifier is a name such as "first_name".
    """
    for column, name in enumerate(rows[0]):
        below = [
            row[column] for row in rows[1:] if column < len(row) and row[column].strip()
        ]
        if below and not _NUMBER.match(name) and all(map(_NUMBER.match, below)):
            return True
        if (
            below
            and _IDENTIFIER.fullmatch(name)
            and not any(map(_IDENTIFIER.fullmatch, below))
        ):
            return True
    return False
