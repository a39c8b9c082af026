"""Text of records, as it is: rows of CSV and TSV files, entries of logs."""

import csv
import re
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.tables import looks_named
from spscanner_rag.files.readers.text_builder import decoded
from spscanner_rag.text.blocks import LONGEST_UNIT, Block
from spscanner_rag.text.sentence_ends import DATED
from spscanner_rag.text.turns import LINE

_DELIMITERS = ",;\t|"
_LOOKED_AT = 20  # lines, for the delimiter, and rows, for the header
_MOST_LINES = 50  # of a row; a longer one has a quotation mark that is never closed
_IDENTIFIER = re.compile(r"[a-z][a-z0-9_.-]*")
_NUMBER = re.compile(r"[\s$€£+(-]*\d")

Row = tuple[int, int, Sequence[str]]  # start, end, cells


def read_table(name: str, data: bytes) -> TextFile:
    """Read a CSV or TSV file; ``ValueError`` if it is not UTF-8 or UTF-16."""
    text = decoded(name, data)
    rows = _rows(text)
    looked_at = list(islice(rows, _LOOKED_AT))
    titles = list(takewhile(lambda row: sum(map(bool, row[2])) < 2, looked_at))  # "sep=;" (Excel) too
    first = looked_at[len(titles) :]
    header = first[0][:2] if first and looks_named([row[2] for row in first], fewest=2) else None
    blocks = [Block(start, end, "row") for start, end, _ in titles]
    if header and _differs([row[2] for row in first]):
        blocks.append(Block(*header, "header"))
        del first[0]
    for part in (first, rows):
        for start, end, _ in part:
            blocks.append(Block(start, end, "row", header=None if (start, end) == header else header))
    return TextFile("", text, tuple(blocks))


def read_log(name: str, data: bytes) -> TextFile:
    """Read a log; ``ValueError`` if it is not UTF-8 or UTF-16.

    An entry is a line with the indented ones below; where entries begin with a time, with all those without one.
    """
    text = decoded(name, data)
    blocks: list[Block] = []
    timed = len(list(islice(DATED.finditer(text), 2))) == 2 and bool(DATED.match(text.lstrip()))
    for line in LINE.finditer(text):
        start, end = line.start(), line.start() + len(line[0].rstrip())
        if end == start or not line[0].strip():
            continue
        goes_on = not DATED.match(line[0]) if timed else line[0][0] in " \t"
        last = blocks[-1] if blocks and goes_on else None
        if last and end - last.start <= LONGEST_UNIT:
            blocks[-1] = last._replace(end=end)
        else:
            blocks.append(Block(start + len(line[0]) - len(line[0].lstrip()), end, "row"))
    return TextFile("", text, tuple(blocks))


def _rows(text: str) -> Iterator[Row]:
    """The rows; after one that cannot be told, every line is a row."""
    read_to = 0

    def lines() -> Iterator[str]:
        nonlocal read_to
        for line in LINE.finditer(text):
            read_to = line.end()
            yield line[0]

    start, last_line = 0, 0
    table = csv.reader(lines(), delimiter=_delimiter(text))
    try:
        for cells in table:
            if table.line_num - last_line > _MOST_LINES:
                raise csv.Error("a quotation mark is not closed")
            yield from _row(text, start, read_to, cells)
            start, last_line = read_to, table.line_num
    except csv.Error:
        for line in LINE.finditer(text, start):
            yield from _row(text, line.start(), line.end(), (line[0],))


def _row(text: str, start: int, end: int, cells: Sequence[str]) -> Iterator[Row]:
    content = text[start:end]
    if any(map(str.strip, cells)):
        yield start + len(content) - len(content.lstrip()), start + len(content.rstrip()), cells


def _delimiter(text: str) -> str:
    """The sign that most rows have most often."""
    lines = [line[0] for line in islice(LINE.finditer(text), _LOOKED_AT) if line[0].strip()]
    counts = {sign: sorted(line.count(sign) for line in lines) for sign in _DELIMITERS}
    return max(_DELIMITERS, key=lambda sign: counts[sign][len(lines) // 4] if lines else 0)


def _differs(rows: Sequence[Sequence[str]]) -> bool:
    """True if a column has numbers below a name, or other words below one such as "first_name"."""
    for column, name in enumerate(rows[0]):
        below = [row[column] for row in rows[1:] if column < len(row) and row[column].strip()]
        if below and not _NUMBER.match(name) and all(map(_NUMBER.match, below)):
            return True
        if below and _IDENTIFIER.fullmatch(name) and not any(map(_IDENTIFIER.fullmatch, below)):
            return True
    return False
