"""HTML to text: what a page shows, without scripts, styles and markup.

libxml2 (lxml) reads the page and mends what is broken in it. Its events become text at once; only the items of
reversed lists are counted in a tree.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.etree.ElementTree import TreeBuilder

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.formulas import formula_text
from spscanner_rag.files.readers.numerals import RAISED, numeral, whole_number
from spscanner_rag.files.readers.tables import MOST_COLUMNS, MOST_ROWS, Cell, Row, add_table
from spscanner_rag.files.readers.text_builder import TextBuilder
from spscanner_rag.text.extras import needed

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
    "head script style template noscript svg canvas iframe object audio video select textarea "
    "datalist rp".split()
)
_PARAGRAPHS = set(
    "p div section article main header footer nav aside address blockquote ul ol li dl dt dd figure figcaption "
    "form fieldset legend table caption tr td th thead tbody tfoot pre hr details summary "
    "body center dialog".split()
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_NO_CELL = {"table", "ul", "ol", "pre", *_HEADINGS}  # a table with one of these in a cell lays out a page
_SPACE = re.compile(r"[\s\xa0]+")
_HIDDEN = re.compile(r"display:none|visibility:(?:hidden|collapse)")
_WHOLE_PAGE = {"html", "body"}  # scripts show them when they are ready
_BANNERS = re.compile(
    r"cookie[-_ ]?(?:banner|consent|notice|bar\b|pop-?up|overlay|modal|dialog|message|wall|law|disclaimer|alert)"
    r"|(?:gdpr|ccpa|consent|privacy)[-_ ]?(?:banner|bar\b|pop-?up|overlay|modal|manager|cookie)"
    r"|gdpr-notice|eu-cookie-|fc-consent|onetrust-|cybotcookiebot"
    r"|cookiehub|didomi-|usercentrics|qc-cmp2|truste[-_]|osano-cm|iubenda-cs|klaro|termly|cmplz-|\bcc-window\b"
    r"|sp_message_container|borlabs-?cookie|\bcky-",
    re.IGNORECASE,
)
_BANNER_TAGS = {"div", "section", "aside", "dialog", "form", "footer", "p"}
_STYLED = re.compile(r"^\{\\(?:display|text)style\s*(.*)\}$", re.DOTALL)
_BOLD = {"b", "strong"}
_RAISED = re.compile(r"[-+−]?\d{1,4}", re.ASCII)  # noqa: RUF001
_TEX = re.compile(r"tex\b|math", re.IGNORECASE)  # classes of pictures of formulas
_DRAWN = {"MathJax", "MathJax_Preview", "MathJax_SVG", "MathJax_CHTML", "katex-html"}
"""Formulas in a second form, for the eye."""

_INTEGER = re.compile(r"\s*([+-]?\d{1,9})(?!\d)")
_LIST_STYLE = re.compile(r"list-style(?:-type)?:([\w-]+)")
_NUMERALS = {
    "lower-alpha": "a",
    "lower-latin": "a",
    "upper-alpha": "A",
    "upper-latin": "A",
    "lower-roman": "i",
}
_NUMERALS |= {"upper-roman": "I", "decimal-leading-zero": "01", "none": "none"}


def read_html(name: str, data: bytes) -> TextFile:
    """Read a page; ``ValueError`` for binary data or absurd nesting, ``ImportError`` without lxml."""
    needed("lxml.etree", f"{name}: reading HTML", "files")
    page = _decoded(name, data)
    root = _parsed(page) if "reversed" in page.lower() else None
    target = _HtmlText([] if root is None else [len(each.findall("li")) for each in root.iter("ol")])
    try:
        _parsed(page, target=target)
    except TooDeep as error:
        raise ValueError(f"{name}: {error}; expected a web page: check that it is the right file") from None
    return target.close()


def _parsed(page: str, **target: object) -> Any:  # noqa: ANN401 - of lxml
    """The root of a page's tree, if no target gets what is read; None for a page without any element or text."""
    from lxml import etree

    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, **target)
    try:
        for start in range(0, len(page), _FEED):
            parser.feed(page[start : start + _FEED].encode("utf-8", "replace"))
        return parser.close()
    except etree.XMLSyntaxError:
        return None


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
class _List:
    number: int = 0  # of the next item
    step: int = 0  # to the one after it; 0 without numbers
    form: str = "1"  # of numbers: 1, 01, a, A, i, I, none


@dataclass
class _Table:
    rows: list[Row] = field(default_factory=list)
    row: Row = field(default_factory=Row)
    in_head: bool = False
    in_cell: bool = False
    plain: bool = False  # some of its text is not bold
    columns: int = 1  # that the cell spans
    spanned: int = 1  # rows that the cell spans
    lays_out: bool = False  # it is no table of data: its cells are paragraphs


class _HtmlText:
    """A target of lxml's parser; ``items`` are the numbers of items of all ordered lists, if one is reversed."""

    def __init__(self, items: Sequence[int]) -> None:
        self._built = TextBuilder()
        self._buffer: list[str] = []
        self._depth = 0
        self._unseen_from: int | None = None  # depth of the element whose content is not shown
        self._verbatim = 0  # open <pre> elements
        self._items = iter(items)
        self._lists: list[_List] = []
        self._marker = ""  # before the next paragraph
        self._tables: list[_Table] = []
        self._formula: TreeBuilder | None = None
        self._formula_depth = 0
        self._alternative = ""  # of the formula, in TeX
        self._bold = self._raised = 0  # open elements
        self._reading: list[str] | None = None  # of ruby, while its text is open
        self._readings: list[str] = []

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._depth += 1
        if self._depth > DEEPEST:
            raise TooDeep(f"got elements nested more than {DEEPEST:,} deep")
        items = next(self._items, 0) if tag == "ol" else 0
        if self._unseen_from is not None:
            return
        if self._formula is not None:
            self._formula.start(tag, dict(attributes))
        elif _is_hidden(tag, attributes):
            self._unseen_from = self._depth
        elif tag == "br":
            self._buffer.append("\n" if self._verbatim else " \n ")
        elif tag in _PARAGRAPHS or tag in _HEADINGS:
            self._begin(tag, attributes)
            if tag in ("ul", "ol"):
                self._lists.append(_list(tag, attributes, items))
        else:
            self._begin_inline(tag, attributes)

    def _begin_inline(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "math":
            self._formula, self._formula_depth = TreeBuilder(), self._depth
            self._formula.start(tag, {})
            self._alternative = attributes.get("alttext", "")
        elif tag == "img" and _TEX.search(attributes.get("class", "")):
            self._buffer.append(_STYLED.sub(r"\1", attributes.get("alt", "")))
        elif tag == "rt":
            self._readings += self._reading or []
            self._reading = []
        self._bold += tag in _BOLD
        self._raised += tag == "sup"

    def end(self, tag: str) -> None:
        self._depth -= 1
        if self._unseen_from is not None:
            if self._depth < self._unseen_from:
                self._unseen_from = None
        elif self._formula is not None:
            root = self._formula.end(tag)
            if self._depth < self._formula_depth:
                self._buffer.append(formula_text(root) or self._alternative)
                self._formula = None
        elif tag in _HEADINGS:
            self._flush(level=_HEADINGS[tag])
        elif tag in _PARAGRAPHS:
            self._end(tag)
        elif tag == "rt" and self._reading is not None:
            self._readings += self._reading
            self._reading = None
        elif tag == "ruby":
            self._end_ruby()
        elif tag in _BOLD:
            self._bold -= 1
        elif tag == "sup":
            self._raised -= 1

    def _end_ruby(self) -> None:
        if reading := "".join([*self._readings, *(self._reading or [])]):
            self._buffer.append(f"({reading})")
        self._reading, self._readings = None, []

    def data(self, text: str) -> None:
        if self._unseen_from is not None:
            return
        if self._formula is not None:
            self._formula.data(text)
        elif self._reading is not None:
            self._reading.append(text.strip())
        else:
            if self._raised and (digits := _RAISED.fullmatch(text)):
                text = digits[0].translate(RAISED)
            if self._tables and not self._bold and text.strip():
                self._tables[-1].plain = True
            self._buffer.append(text if self._verbatim else _SPACE.sub(" ", text))

    def close(self) -> TextFile:
        self._flush()
        return self._built.converted()

    def _begin(self, tag: str, attributes: Mapping[str, str]) -> None:
        table = self._tables[-1] if self._tables else None
        if table and table.in_cell and tag in _NO_CELL:
            self._give_up(table)
        self._flush()
        if tag == "li":
            self._marker = self._next_marker(attributes)
        elif tag == "pre":
            self._verbatim += 1
        elif tag == "table":
            self._tables.append(_Table())
        elif table and tag in ("thead", "tbody", "tfoot"):
            table.in_head = tag == "thead"
        elif table and tag == "tr":
            table.row = Row(marked=True)
        elif table and tag in ("td", "th"):
            table.in_cell, table.plain = not table.lays_out, False
            table.columns = max(1, whole_number(attributes.get("colspan", ""), MOST_COLUMNS, 1))
            table.spanned = whole_number(attributes.get("rowspan", ""), MOST_ROWS, 1) or MOST_ROWS

    def _end(self, tag: str) -> None:
        table = self._tables[-1] if self._tables else None
        if table and tag in ("td", "th") and table.in_cell:
            text = " ".join("".join(self._buffer).split())
            row = table.row
            row.cells.append(Cell(text, table.columns, table.spanned))
            row.marked = row.marked and (tag == "th" or table.in_head or not text)
            row.strong = row.strong and not table.plain
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
            table.rows.append(table.row)
            table.row = Row(marked=True)
        elif table and tag == "thead":
            table.in_head = False
        elif table and tag == "table":
            self._add_rows(self._tables.pop())

    def _flush(self, *, level: int = 0, verbatim: bool = False) -> None:
        """Add what was collected as a paragraph, a heading or a fence; in a cell, go on."""
        self._end_ruby()
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

    def _next_marker(self, attributes: Mapping[str, str]) -> str:
        if not self._lists or not self._lists[-1].step:
            return "- "
        found = self._lists[-1]
        number = _integer(attributes.get("value", ""), found.number)
        found.number = number + found.step
        form = _numerals(attributes, found.form)
        return "" if form == "none" else f"{numeral(number, form)}. "

    def _give_up(self, table: _Table) -> None:
        """A table of another kind than data: what was collected of its row are paragraphs."""
        self._add_rows(table)
        for cell in table.row.cells:
            if cell.text:
                self._built.paragraph(cell.text)
        table.row, table.in_cell, table.lays_out = Row(), False, True

    def _add_rows(self, table: _Table) -> None:
        for row in table.rows:
            row.marked = row.marked and any(cell.text for cell in row.cells)
        add_table(self._built, table.rows, marked_again=True)
        table.rows = []


def _is_hidden(tag: str, attributes: Mapping[str, str]) -> bool:
    is_tex = tag == "script" and attributes.get("type", "").startswith("math/tex")  # as MathJax has formulas
    if tag in _UNSEEN and not is_tex:
        return True
    if not attributes:
        return tag == "dialog"
    style = "".join(attributes.get("style", "").split()).lower()
    if tag in _WHOLE_PAGE:
        return False
    if "hidden" in attributes or "popover" in attributes or _HIDDEN.search(style):
        return True
    if tag == "dialog" and "open" not in attributes:
        return True
    classes = attributes.get("class", "")
    if tag in ("span", "div") and not _DRAWN.isdisjoint(classes.split()):
        return True
    names = f"{attributes.get('id', '')} {classes} {attributes.get('aria-label', '')}"
    return tag in _BANNER_TAGS and bool(_BANNERS.search(names))


def _list(tag: str, attributes: Mapping[str, str], items: int) -> _List:
    if tag == "ul":
        return _List()
    backwards = "reversed" in attributes
    first = _integer(attributes.get("start", ""), items if backwards else 1)
    return _List(first, -1 if backwards else 1, _numerals(attributes, "1"))


def _integer(text: str, default: int) -> int:
    found = _INTEGER.match(text)
    return int(found[1]) if found else default


def _numerals(attributes: Mapping[str, str], default: str) -> str:
    """The form of the numbers of a list or an item."""
    style = _LIST_STYLE.search("".join(attributes.get("style", "").split()).lower())
    if style and style[1] in _NUMERALS:
        return _NUMERALS[style[1]]
    return attributes.get("type", "") or default
