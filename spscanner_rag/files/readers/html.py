"""HTML to text: what a page shows, without scripts, styles and markup.

libxml2 (lxml) parses the page and repairs broken markup.
"""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Self
from xml.etree.ElementTree import Element, TreeBuilder

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.notation import (
    RAISED,
    STRUCK_MARK,
    formula_text,
    numeral,
    struck_joined,
    whole_number,
)
from spscanner_rag.files.readers.text_builder import (
    MOST_COLUMNS,
    MOST_ROWS,
    Cell,
    Row,
    TextBuilder,
    add_table,
)
from spscanner_rag.system.install_hints import import_extra

_BOMS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_META = re.compile(
    rb"<meta[^>]{0,300}?charset\s*=\s*[\"']?\s*([\w-]{3,30})", re.IGNORECASE
)
_META_WITHIN = 4096
# Web encodings that Python knows by the same name. Pages that declare Latin-1 or ASCII
# mean Windows-1252.
_ENCODING = re.compile(
    r"utf-?8|iso-8859-\d+|windows-125\d|koi8-[ru]|shift_jis|euc-(jp|kr)|gbk|gb2312"
    r"|gb18030|big5",
    re.IGNORECASE,
)
_WINDOWS = re.compile(r"iso-8859-1|latin-?1|(us-)?ascii|windows-1252", re.IGNORECASE)
_FEED = 2**14  # characters fed at a time: only between pieces can the parser be stopped
DEEPEST = 4_000
"""Most nested elements; browsers stop at a few hundred.

The parser's time grows with depth times size.
"""

_UNSEEN = set(
    "head script style template noscript svg canvas iframe object audio video select"
    " datalist rp".split()
)
# What of these is on the page and left out, for a note.
_LEFT_OUT = {
    "svg": "words in drawings",
    "select": "fields with a choice",
    "iframe": "frames of other pages",
    "object": "embedded objects",
}
STRUCK = {"s", "strike", "del"}
# Fields of forms, by whether they are not ticked or ticked, and those whose value is
# not on the page.
_CONTROLS = frozenset(("button", "textarea"))  # boxes of their own
_BOXES = {"checkbox": ("\u2610 ", "\u2612 "), "radio": ("\u25cb ", "\u25c9 ")}
_VALUES_NOT_SHOWN = {"hidden", "password", "color", "file", "image", "range"}
_PARAGRAPHS = set(
    "p div section article main header footer nav aside address blockquote ul ol li dl"
    " dt dd figure figcaption form fieldset legend table caption tr td th thead tbody"
    " tfoot pre hr details summary body center dialog".split()
)
_LINKS = {"a", "button"}
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
# a table with one of these in a cell is for page layout
_NO_CELL = {
    "table",
    "ul",
    "ol",
    "pre",
    *_HEADINGS,
}
_LISTS = {"ul", "ol"}
_LONGEST_WITH_LISTS = 300  # characters of a row
QUOTED = "quoted"
NOT_QUOTED = "not quoted"
"""Places of a page whose quotations are marked."""

_SPACE = re.compile(r"[\s\xa0]+")
_HIDDEN = re.compile(r"display:none|visibility:(?:hidden|collapse)")
_WHOLE_PAGE = {"html", "body"}  # may be hidden until a script shows them
_BANNERS = re.compile(
    r"cookie[-_"
    r" ]?(?:banner|consent|notice|bar\b|pop-?up|overlay|modal|dialog|message|wall|law"
    r"|disclaimer|alert)"
    r"|(?:gdpr|ccpa|consent|privacy)[-_"
    r" ]?(?:banner|bar\b|pop-?up|overlay|modal|manager|cookie)"
    r"|gdpr-notice|eu-cookie-|fc-consent|onetrust-|cybotcookiebot"
    r"|cookiehub|didomi-|usercentrics|qc-cmp2|truste[-_]|osano-cm|iubenda-cs"
    r"|klaro|termly|cmplz-|\bcc-window\b"
    r"|sp_message_container|borlabs-?cookie|\bcky-",
    re.IGNORECASE,
)
_BANNER_TAGS = {"div", "section", "aside", "dialog", "form", "footer", "p"}
_STYLED = re.compile(r"^\{\\(?:display|text)style\s*(.*)\}$", re.DOTALL)
_RAISED = re.compile(r"[-+−]?\d{1,4}", re.ASCII)  # noqa: RUF001
_TEX = re.compile(r"tex\b|math", re.IGNORECASE)  # classes of images of formulas
_DRAWN = {"MathJax", "MathJax_Preview", "MathJax_SVG", "MathJax_CHTML", "katex-html"}
"""Classes of a second, visual form of formulas."""

_INTEGER = re.compile(r"\s*([+-]?\d{1,9})(?!\d)")
_LIST_STYLE = re.compile(r"list-style(?:-type)?:([\w-]+)")
_NUMERALS = {
    "lower-alpha": "a",
    "lower-latin": "a",
    "upper-alpha": "A",
    "upper-latin": "A",
    "lower-roman": "i",
    "upper-roman": "I",
    "decimal-leading-zero": "01",
    "none": "none",
}


def begins_as_html(data: bytes) -> bool:
    """Return whether a file begins with a document type or an element of HTML."""
    beginning = data[:256].removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    return beginning.startswith((b"<!doctype html", b"<html"))


def read_html(data: bytes, *, marks_quotations: bool = False) -> TextFile:
    """Read a page.

    ``ValueError`` for binary data or extreme nesting, ``ImportError`` without lxml.

    With ``marks_quotations``, as for mails, its places say what is quoted.
    """
    page = _HtmlText(marks_quotations=marks_quotations).add(_tree_of(data))
    for what, number in sorted((+page.left_out).items()):
        page.built.note(f"left out {what}: {number:,}")
    return page.built.converted()


def _tree_of(data: bytes) -> Element:
    etree = import_extra("lxml.etree", "reading HTML", "files")
    page = _decoded(data)
    tree = _Tree()
    parser = etree.HTMLParser(target=tree, encoding="utf-8", huge_tree=True)
    try:
        for start in range(0, len(page), _FEED):
            parser.feed(page[start : start + _FEED].encode("utf-8", "replace"))
        parser.close()
    except etree.XMLSyntaxError:  # no element and no text
        pass
    except ValueError as error:
        raise ValueError(
            f"{error}; expected a web page: check that it is the right file"
        ) from None
    return tree.root


class _Tree:
    """A target for lxml's parser.

    The parser's own trees end at the end tag of ``html``, and 2,000 elements deep.
    """

    def __init__(self) -> None:
        self._builder = TreeBuilder()
        self._depth = 0
        self.root = self._builder.start("page", {})
        self.data = self._builder.data

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._depth += 1
        if self._depth > DEEPEST:
            raise ValueError(f"got elements nested more than {DEEPEST:,} deep")
        self._builder.start(tag, dict(attributes))

    def end(self, tag: str) -> None:
        self._depth -= 1
        self._builder.end(tag)

    def close(self) -> None:
        self._builder.end("page")


def _decoded(data: bytes) -> str:
    """Decode a page by its byte order mark, else as UTF-8 if it is that.

    Else by its declared encoding, or Windows-1252. What is valid UTF-8 is nothing else,
    although a page that was saved as UTF-8 may still declare another encoding.
    """
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    if b"\0" in data:
        raise ValueError(
            f"got binary data (a zero byte at {data.index(0)}); expected HTML"
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    named = _META.search(data[:_META_WITHIN])
    encoding = named[1].decode("ascii", "replace") if named else ""
    if _ENCODING.fullmatch(encoding) and not _WINDOWS.fullmatch(encoding):
        return data.decode(encoding, "replace")
    return data.decode("windows-1252", "replace")


class _HtmlText:
    """Builds the text of an element while walking its tree."""

    def __init__(self, *, marks_quotations: bool = False) -> None:
        self.built = TextBuilder()
        self._marks_quotations = marks_quotations
        self.plain = False  # whether some of the text is not bold
        self._buffer: list[str] = []
        self._open: Counter[str] = Counter()  # number of open elements by tag
        self._markers: dict[Element, str] = {}  # markers of the items of ordered lists
        self._marker = ""  # put before the next paragraph
        self._tables: list[list[Row]] = []
        self._after_link = False
        self._reading: list[str] = []  # how the previous word is read (ruby)
        self.left_out: Counter[str] = Counter()  # what is on the page, but not read

    def add(self, root: Element) -> Self:
        # and whether it begins; a stack, since a page may be too deep for recursion
        todo = [(root, True)]
        while todo:
            element, begins = todo.pop()
            if begins and not self._start(element):
                self._open[element.tag] += 1
                self._data(element.text or "")
                todo.append((element, False))
                todo += [(child, True) for child in reversed(element)]
                del element[:]  # free what has been read
                continue
            if not begins:
                self._end(element.tag)
                self._open[element.tag] -= 1
            if element is not root:
                self._data(element.tail or "")
        self._flush()
        return self

    def _start(self, element: Element) -> bool:
        """Begin an element.

        True if nothing in it remains to be read.
        """
        tag = element.tag
        if _is_hidden(tag, element.attrib):
            self._count_left_out(element)
            return True
        self._start_inline(tag)
        if tag == "math":
            self._buffer.append(formula_text(element) or element.get("alttext", ""))
            return True
        if tag == "tr" and self._tables:
            if _is_data(element):
                self._tables[-1].append(_row(element, in_head=self._open["thead"] > 0))
                return True
            self._add_rows()
        if tag == "br":
            self._buffer.append("\n" if self._open["pre"] else " \n ")
        elif tag == "input":
            self._add_field(element)
        elif tag == "img" and _TEX.search(element.get("class", "")):
            self._buffer.append(_STYLED.sub(r"\1", element.get("alt", "")))
        elif tag in _PARAGRAPHS or tag in _HEADINGS:
            self._flush()
        self._start_list_or_table(element)
        return False

    def _start_inline(self, tag: str) -> None:
        if tag in STRUCK:
            self._buffer.append(STRUCK_MARK)
        elif tag in _LINKS and self._after_link:
            self._buffer.append(" ")  # links of a menu, which a style sheet parts
        elif tag in _CONTROLS:
            self._buffer.append(" ")

    def _add_field(self, element: Element) -> None:
        """Add what a field or a button of a form shows."""
        kind = element.get("type", "text").lower()
        if element.get("role") == "button":  # a menu's, which style sheets hide
            return
        if kind in _BOXES:
            self._buffer.append(f" {_BOXES[kind]['checked' in element.attrib]}")
        elif kind not in _VALUES_NOT_SHOWN:
            shown = element.get("value", "") or element.get("placeholder", "")
            self._buffer.append(f" {shown} ")

    def _count_left_out(self, element: Element) -> None:
        """Count an element that people see, but that is not read."""
        if _is_out_of_sight(element.attrib):
            return
        if element.tag in _LEFT_OUT:
            has_text = element.tag in ("iframe", "object") or any(element.itertext())
            self.left_out[_LEFT_OUT[element.tag]] += has_text
        elif _is_banner(element.tag, element.attrib):
            self.left_out["banners about cookies or consent"] += 1

    def _start_list_or_table(self, element: Element) -> None:
        if element.tag == "ol":
            self._markers |= _numbers(element)
        elif element.tag == "li":
            self._marker = self._markers.pop(element, "- ")
        elif element.tag == "table":
            self._tables.append([])

    def _end(self, tag: str) -> None:
        if tag in _PARAGRAPHS or tag in _HEADINGS:
            self._flush(level=_HEADINGS.get(tag, 0))
        if tag in STRUCK:
            self._buffer.append(STRUCK_MARK)
        if tag in _CONTROLS:
            self._buffer.append(" ")
        if tag in _LINKS:
            self._after_link = True
        if tag == "ruby":
            self._end_ruby()
        elif tag == "li":
            self._marker = ""
        elif tag == "table":
            self._add_rows()
            self._tables.pop()

    def _end_ruby(self) -> None:
        if reading := "".join(self._reading):
            self._buffer.append(f"({reading})")
        self._reading = []

    def _data(self, text: str) -> None:
        self._after_link = self._after_link and not text
        if self._open["rt"]:
            self._reading.append(text.strip())
            return
        if self._open["sup"] and (digits := _RAISED.fullmatch(text)):
            text = digits[0].translate(RAISED)
        self.plain = self.plain or (
            bool(text.strip()) and not (self._open["b"] or self._open["strong"])
        )
        self._buffer.append(text if self._open["pre"] else _SPACE.sub(" ", text))

    def _flush(self, *, level: int = 0) -> None:
        """Add the collected text as a paragraph, a heading or a fence."""
        self._end_ruby()
        text = struck_joined("".join(self._buffer))
        self._buffer = []
        if self._open["pre"]:
            if text.strip():
                self.built.fence(self._marker + text.strip("\r\n").rstrip())
                self._marker = ""
            return
        lines = (" ".join(line.split()) for line in text.split("\n"))
        if text := "\n".join(line for line in lines if line):
            self._mark_quotation()
            if level:
                self.built.heading(self._marker + text, level)
            else:
                self.built.paragraph(self._marker + text)
            self._marker = ""

    def _mark_quotation(self) -> None:
        if self._marks_quotations:
            self.built.place(QUOTED if self._open["blockquote"] else NOT_QUOTED)

    def _add_rows(self) -> None:
        self._mark_quotation()
        add_table(self.built, self._tables[-1], marked_again=True)
        self._tables[-1] = []


def _is_data(row: Element) -> bool:
    """False for a row that is for page layout, whose content is paragraphs."""
    stray = "".join([row.text or "", *(cell.tail or "" for cell in row)]).strip()
    if stray or not {cell.tag for cell in row} <= {"td", "th"}:
        return False
    tags = {element.tag for element in row.iter()}
    if tags.isdisjoint(_NO_CELL):
        return True
    # A short list in a cell, as beside "Founders" in a box of facts, is its value.
    has_label = any(cell.tag == "th" for cell in row)
    is_short = len("".join(row.itertext())) <= _LONGEST_WITH_LISTS
    return has_label and is_short and tags.isdisjoint(_NO_CELL - _LISTS)


def _row(element: Element, *, in_head: bool) -> Row:
    row = Row(marked=True)
    for cell in element:
        if _is_hidden(cell.tag, cell.attrib):
            continue
        cell_text = _HtmlText().add(cell)
        text = " ".join(cell_text.built.converted().text.split())
        columns = max(1, whole_number(cell.get("colspan", ""), MOST_COLUMNS, 1))
        rows = whole_number(cell.get("rowspan", ""), MOST_ROWS, 1) or MOST_ROWS
        row.cells.append(Cell(text, columns, rows))
        row.marked = row.marked and (cell.tag == "th" or in_head or not text)
        row.strong = row.strong and not cell_text.plain
    row.marked = row.marked and any(cell.text for cell in row.cells)
    return row


def _is_hidden(tag: str, attributes: Mapping[str, str]) -> bool:
    """True for an element whose content is not read."""
    if tag in _UNSEEN:  # but MathJax has formulas in scripts
        return tag != "script" or not attributes.get("type", "").startswith("math/tex")
    if tag in _WHOLE_PAGE:
        return False
    if _is_out_of_sight(attributes):
        return True
    if tag == "dialog" and "open" not in attributes:
        return True
    classes = attributes.get("class", "").split()
    if tag in ("span", "div") and not _DRAWN.isdisjoint(classes):
        return True
    return _is_banner(tag, attributes)


def _is_out_of_sight(attributes: Mapping[str, str]) -> bool:
    style = "".join(attributes.get("style", "").split()).lower()
    is_hidden = "hidden" in attributes or "popover" in attributes
    return is_hidden or _HIDDEN.search(style) is not None


def _is_banner(tag: str, attributes: Mapping[str, str]) -> bool:
    """True for a banner about cookies or consent, which a page repeats."""
    keys = ("id", "class", "aria-label")
    names = " ".join(attributes.get(key, "") for key in keys)
    return tag in _BANNER_TAGS and _BANNERS.search(names) is not None


def _numbers(of: Element) -> dict[Element, str]:
    """The marker before each item of an ordered list."""
    items = [item for item in of.findall("li") if not _is_hidden("li", item.attrib)]
    backwards = "reversed" in of.attrib
    number = _integer(of.get("start", ""), len(items) if backwards else 1)
    list_form = _numerals(of.attrib, "1")
    markers = {}
    for item in items:
        number = _integer(item.get("value", ""), number)
        form = _numerals(item.attrib, list_form)
        markers[item] = "" if form == "none" else f"{numeral(number, form)}. "
        number += -1 if backwards else 1
    return markers


def _integer(text: str, default: int) -> int:
    integer = _INTEGER.match(text)
    return int(integer[1]) if integer else default


def _numerals(attributes: Mapping[str, str], default: str) -> str:
    """The number format of a list or an item."""
    style = _LIST_STYLE.search("".join(attributes.get("style", "").split()).lower())
    if style and style[1] in _NUMERALS:
        return _NUMERALS[style[1]]
    return attributes.get("type", "") or default
