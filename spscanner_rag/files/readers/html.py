"""HTML to text: what a page shows, without scripts, styles and markup.

libxml2 (lxml) reads the page and mends what is broken in it. Its events become text at once; no tree is built.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from spscanner_rag.files.documents import Converted
from spscanner_rag.files.readers.text_builder import Table, TextBuilder

_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_META = re.compile(rb"<meta[^>]{0,300}?charset\s*=\s*[\"']?\s*([\w-]{3,30})", re.IGNORECASE)
_META_WITHIN = 4096
# The encodings of the web that Python knows by the same name. Pages that say Latin-1 or ASCII mean Windows-1252.
_ENCODING = re.compile(
    r"utf-?8|iso-8859-\d+|windows-125\d|koi8-[ru]|shift_jis|euc-(jp|kr)|gbk|gb2312|gb18030|big5",
    re.IGNORECASE,
)
_WINDOWS = re.compile(r"iso-8859-1|latin-?1|(us-)?ascii|windows-1252", re.IGNORECASE)
_FEED = 2**14  # characters read at a time: the parser notices after each piece that it was stopped
DEEPEST = 4_000
"""Elements within each other; browsers stop at some hundreds. The parser's time grows with depth times size."""

_UNSEEN = set(
    "head script style template noscript svg math canvas iframe object audio video select textarea "
    "datalist".split()
)
_PARAGRAPHS = set(
    "p div section article main header footer nav aside address blockquote ul ol li dl dt dd figure figcaption "
    "form fieldset legend table caption tr td th thead tbody tfoot pre hr details summary "
    "body center dialog".split()
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_NO_CELL = {"table", "ul", "ol", "pre", *_HEADINGS}  # a table with one of these in a cell lays out a page
_SPACE = re.compile(r"[\s\xa0]+")


def read_html(name: str, data: bytes) -> Converted:
    """Read a page; ``ValueError`` for binary data or absurd nesting, ``ImportError`` without lxml."""
    try:
        from lxml import etree
    except ImportError as error:
        raise ImportError(f'{name}: reading HTML needs lxml: pip install "spscanner-rag[files]"') from error

    page, target = _decoded(name, data), HtmlText()
    parser = etree.HTMLParser(target=target, encoding="utf-8", huge_tree=True)
    try:
        for start in range(0, len(page), _FEED):
            parser.feed(page[start : start + _FEED].encode("utf-8", "replace"))
        parser.close()
    except TooDeep as error:
        raise ValueError(f"{name}: {error}; expected a web page: check that it is the right file") from None
    except etree.XMLSyntaxError:  # a page without any element or text
        pass
    return target.converted()


def _decoded(name: str, data: bytes) -> str:
    """A page is in the encoding of its byte order mark, or that it names, or UTF-8, or Windows-1252."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    if b"\0" in data:
        raise ValueError(f"{name}: got binary data (a zero byte at {data.index(0)}); expected HTML")
    named = _META.search(data[:_META_WITHIN])
    encoding = named[1].decode("ascii", "replace") if named else ""
    if _ENCODING.fullmatch(encoding) and not _WINDOWS.fullmatch(encoding):
        return data.decode(encoding, "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("windows-1252", "replace")


class TooDeep(Exception):  # noqa: N818 - what the page is
    """Elements are nested deeper than `DEEPEST`."""


@dataclass
class _Table:
    cells: list[str] = field(default_factory=list)  # of the current row
    all_heads: bool = True  # whether all cells of the row are <th>
    in_cell: bool = False
    rows: Table = field(default_factory=Table)
    lays_out: bool = False  # it is no table of data: its cells are paragraphs


class HtmlText:
    """A target of lxml's parser."""

    def __init__(self) -> None:
        self._built = TextBuilder()
        self._buffer: list[str] = []
        self._depth = 0
        self._unseen_from: int | None = None  # depth of the element whose content is not shown
        self._verbatim = 0  # open <pre> elements
        self._lists: list[int | None] = []  # number of the last item of each open list; None without numbers
        self._marker = ""  # before the next paragraph
        self._tables: list[_Table] = []

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise TooDeep(f"got elements nested more than {DEEPEST:,} deep")
        if self._unseen_from is not None:
            return
        if tag in _UNSEEN or _is_hidden(attributes):
            self._unseen_from = self._depth
        elif tag == "br":
            self._buffer.append("\n" if self._verbatim else " \n ")
        elif tag in _PARAGRAPHS or tag in _HEADINGS:
            self._begin(tag)

    def end(self, tag: str) -> None:
        """An element ends."""
        self._depth -= 1
        if self._unseen_from is not None:
            if self._depth < self._unseen_from:
                self._unseen_from = None
            return
        if tag in _HEADINGS:
            self._flush(level=_HEADINGS[tag])
        elif tag in _PARAGRAPHS:
            self._end(tag)

    def data(self, text: str) -> None:
        """Text between tags."""
        if self._unseen_from is None:
            self._buffer.append(text if self._verbatim else _SPACE.sub(" ", text))

    def comment(self, text: str) -> None:
        """Comments are not shown."""

    def pi(self, target: str, data: str | None = None) -> None:
        """Processing instructions are not shown."""

    def close(self) -> None:
        """The page ends."""
        self._flush()

    def converted(self) -> Converted:
        """The text and its blocks."""
        self._flush()
        return self._built.converted()

    def _begin(self, tag: str) -> None:
        table = self._tables[-1] if self._tables else None
        if table and table.in_cell and tag in _NO_CELL:
            self._give_up(table)
        self._flush()
        if tag in ("ul", "ol"):
            self._lists.append(0 if tag == "ol" else None)
        elif tag == "li":
            self._marker = self._next_marker()
        elif tag == "pre":
            self._verbatim += 1
        elif tag == "table":
            self._tables.append(_Table())
        elif table and tag == "tr":
            table.cells, table.all_heads = [], True
        elif table and tag in ("td", "th"):
            table.in_cell = not table.lays_out
            table.all_heads &= tag == "th"

    def _end(self, tag: str) -> None:
        table = self._tables[-1] if self._tables else None
        if table and tag in ("td", "th") and table.in_cell:
            table.cells.append(" ".join("".join(self._buffer).split()))
            self._buffer, table.in_cell = [], False
            return
        self._flush(verbatim=tag == "pre")
        if tag in ("ul", "ol") and self._lists:
            self._lists.pop()
        elif tag == "li":
            self._marker = ""
        elif tag == "pre":
            self._verbatim = max(0, self._verbatim - 1)
        elif table and tag == "tr":
            self._built.row(table.rows, table.cells, is_header=table.all_heads)
            table.cells = []
        elif table and tag == "table":
            self._tables.pop()

    def _flush(self, *, level: int = 0, verbatim: bool = False) -> None:
        """Add what was collected as a paragraph, a heading or a fence; in a cell, go on."""
        if self._tables and self._tables[-1].in_cell:
            self._buffer.append(" ")
            return
        text, self._buffer = "".join(self._buffer), []
        if verbatim or self._verbatim:
            if text.strip():
                self._built.fence(self._marker + text.strip("\r\n").rstrip())
                self._marker = ""
            return
        lines = (" ".join(line.split()) for line in text.split("\n"))
        if text := "\n".join(line for line in lines if line):
            if level:
                self._built.heading(self._marker + text, level)
            else:
                self._built.paragraph(self._marker + text)
            self._marker = ""

    def _next_marker(self) -> str:
        if not self._lists or self._lists[-1] is None:
            return "- "
        self._lists[-1] += 1
        return f"{self._lists[-1]}. "

    def _give_up(self, table: _Table) -> None:
        """A table of another kind than data: what was collected of its row are paragraphs."""
        begun, self._buffer = self._buffer, []
        self._add_paragraphs(table)
        self._buffer = begun
        table.in_cell, table.lays_out = False, True

    def _add_paragraphs(self, table: _Table) -> None:
        for cell in filter(None, table.cells):
            self._built.paragraph(cell)
        table.cells = []


def _is_hidden(attributes: Mapping[str, str]) -> bool:
    style = attributes.get("style", "").replace(" ", "").lower()
    return "hidden" in attributes or "display:none" in style
