"""Plain text, and a builder of one text from paragraphs, headings, fences and rows of tables."""

import re
from collections.abc import Sequence

from spscanner_rag.files.documents import TextFile
from spscanner_rag.text.blocks import LONGEST_READ_WITH, Block

BETWEEN_PARAGRAPHS, BETWEEN_ROWS, BETWEEN_CELLS = "\n\n", "\n", " | "
LONGEST_TITLE = 300  # a longer heading, in characters, is a paragraph in large letters
LONGEST_ROW = 2_000  # a longer row, in characters, lays out a page; its cells are paragraphs
_UNREADABLE = re.compile("[\0\ud800-\udfff]")


def readable(text: str) -> str:
    """The text with U+FFFD for zero characters and lone surrogates, which no file can hold."""
    return _UNREADABLE.sub("\ufffd", text)


def decoded(name: str, data: bytes) -> str:
    """UTF-8 without its byte order mark, or UTF-16 with one; ``ValueError`` for all else, binary data included."""
    encoding = "UTF-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "UTF-8"
    try:
        zero = data.find(b"\0") if encoding == "UTF-8" else -1
        text = data.decode("utf-16" if encoding == "UTF-16" else "utf-8-sig") if zero < 0 else ""
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name}: got byte 0x{data[error.start]:02x} at {error.start}, not {encoding}; expected UTF-8 text: "
            "convert text in another encoding, for example with `iconv -f LATIN1 -t UTF-8`"
        ) from None
    if (zero := max(zero, text.find("\0"))) >= 0:
        raise ValueError(
            f"{name}: got binary data (a zero byte at {zero}); expected UTF-8 text, HTML, Markdown, "
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
