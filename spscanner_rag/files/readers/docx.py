"""DOCX to text: headings by the styles' names, numbers of lists, rows of tables, formulas, notes at the end.

Changes count as accepted: inserted text is read, deleted
text is not. Pictures, comments, headers and footers are left out, and no other file is opened.
"""

import re
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.docx_lists import LAST_LEVEL, Lists, Style, Styles, outline_level
from spscanner_rag.files.readers.docx_parts import (
    NAMES,
    Element,
    Package,
    TooLarge,
    archive_of,
    attribute,
    is_on,
    properties,
    switched,
    value,
    word,
)
from spscanner_rag.files.readers.formulas import formula_text
from spscanner_rag.files.readers.numerals import RAISED, whole_number
from spscanner_rag.files.readers.tables import MOST_COLUMNS, Cell, Row, add_table
from spscanner_rag.files.readers.text_builder import TextBuilder
from spscanner_rag.text.extras import needed

_SYMBOL_LETTERS = "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼"  # noqa: RUF001 - from 0x41 on
_SYMBOL_SIGNS = "ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑"  # noqa: RUF001 - from 0xA1 on
_SYMBOL = dict(zip(range(0x41, 0x7F), _SYMBOL_LETTERS, strict=False))
_SYMBOL |= dict(zip(range(0xA1, 0xE6), _SYMBOL_SIGNS, strict=False))
_SYMBOL |= {0x22: "∀", 0x24: "∃", 0x27: "∋", 0x2A: "∗", 0x2D: "−", 0x40: "≅", 0xF2: "∫"}  # noqa: RUF001
_WINGDINGS = dict(
    zip(
        bytes.fromhex("21282a36414344464a4c6c6e6f71727576779fa1a7a8abd8dfe0e1e2e8f0fbfcfdfe"),
        "✏☎✉⌛✌👍👎☞☺☹●■□❑❒◆❖⬥•○▪◻★➢←→↑↓➔⇨✗✓☒☑",
        strict=True,
    )
)
_WINGDINGS_2 = dict(zip(bytes.fromhex("4f5051525354a3"), "✗✓☒☑☒☒□", strict=True))
_FONTS = {"symbol": _SYMBOL, "wingdings": _WINGDINGS, "wingdings 2": _WINGDINGS_2}
_PRIVATE = range(0xE000, 0xF900)
_IN_FONT = re.compile("[\ue000-\uf8ff]")
_DIGITS = re.compile(r"[-+−]?\d{1,4}", re.ASCII)  # noqa: RUF001


def symbol(font: str, code: str) -> str:
    """A character by its font and its number, in hexadecimal digits; U+FFFD for one that is not known."""
    try:
        number = int(code[:6], 16)
        known = _FONTS.get(font.lower().strip())
        if known is None and number not in _PRIVATE:
            return chr(number)
        number &= 0xFF if number in _PRIVATE else -1
        return (known or {}).get(number) or (
            chr(number) if font.lower() == "symbol" and number < 0x7F else "\ufffd"
        )
    except (ValueError, OverflowError):
        return "\ufffd"


def shown(text: str, font: str, *, raised: bool) -> str:
    """The text of a run: of a font of symbols in Unicode, and raised digits as such, which "10" and "3" need."""
    if font.lower() in _FONTS and _IN_FONT.search(text):
        text = _IN_FONT.sub(lambda match: symbol(font, f"{ord(match[0]):x}"), text)
    return text.translate(RAISED) if raised and _DIGITS.fullmatch(text) else text


_MATH = (
    "{http://schemas.openxmlformats.org/officeDocument/2006/math}",
    "{http://purl.oclc.org/ooxml/officeDocument/math}",
)
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
"""A second form of a text box, for older programs."""

_UNREAD = {"del", "moveFrom", "instrText", "delText", "pPr", "rPr", "tcPr", "trPr", "tblPr", "rubyPr"}
_STORIES = {"tc", "txbxContent", "body", "footnote", "endnote"}  # no paragraph goes on from one to the next
_DELETED = {"del", "moveFrom"}  # among the properties of what is deleted
_PIECES = {"tab": " ", "ptab": " ", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_FIRST_ROW_BIT = set("2367abef")  # hexadecimal digits with it
_PLAIN_FILLS = {"", "auto", "FFFFFF", "ffffff"}


@dataclass(slots=True)
class _Paragraph:
    style: Style
    parts: list[str] = field(default_factory=list)
    reading: str = ""  # of the characters before, above which it stands (ruby)

    def add(self, text: str, reading: str = "") -> None:
        if self.reading and not reading:
            self.parts.append(f"({self.reading})")
            self.reading = ""
        self.parts.append(text)
        self.reading += reading


class _Run:
    def __init__(self, element: Element, styles: Styles) -> None:
        own = properties(element, "w:rPr")
        style = styles.of(value(own.get("rStyle")))
        self.hidden = is_on(own.get("vanish"), ".", style.hidden)
        self.bold = is_on(own.get("b"), ".", style.bold)
        self.raised = value(own.get("vertAlign")) == "superscript"
        self.font = attribute(own.get("rFonts"), "ascii")


@dataclass(slots=True)
class _Cell:
    paragraphs: list[str] = field(default_factory=list)
    plain: bool = False  # some of its text is not bold


class _Story:
    """Reads a part of the document: its text, its footnotes or its endnotes."""

    def __init__(self, built: TextBuilder, styles: Styles, lists: Lists) -> None:
        self._built, self._styles, self._lists = built, styles, lists
        self._carried: list[str] = []  # the text of paragraphs whose ends were deleted
        self._rows: list[Row] | None = None  # of the open table
        self._cell: _Cell | None = None  # all text in it belongs to it, that of tables too

    def read(self, parent: Element, paragraph: _Paragraph | None = None, run: _Run | None = None) -> None:
        """Read what an element holds, within the paragraph and the run that are open."""
        for child in parent:
            name = word(child.tag)
            if name in _UNREAD or name.endswith("Change") or child.tag == _FALLBACK:
                continue
            match name:
                case "p":
                    self._paragraph(child)
                case "r":
                    self.read(child, paragraph, _Run(child, self._styles))
                case "tbl" if self._rows is None:
                    self._table(child)
                case "tr" if self._rows is not None and self._cell is None:
                    self._row(child, self._rows)
                case "tc" if self._rows and self._cell is None:
                    self._read_cell(child, self._rows[-1])
                case _ if paragraph:
                    self._piece(child, name, paragraph, run)
                case _:
                    self.read(child)
            if name in _STORIES:
                self._end_story()

    def _end_story(self) -> None:
        if self._carried:
            self._end(_Paragraph(Style(), self._carried), {})
            self._carried = []

    def _piece(self, element: Element, name: str, paragraph: _Paragraph, run: _Run | None) -> None:
        """A part of a paragraph: text, a sign, a formula, or an element that holds some."""
        if element.tag.startswith(_MATH) and element.tag.endswith("}oMath"):
            self._add(formula_text(element), paragraph, run)
        elif name == "ruby":
            reading, base = (_text_of(element.find(f"w:{each}", NAMES)) for each in ("rt", "rubyBase"))
            self._add(base, paragraph, run, reading)
        elif name not in ("t", "sym", *_PIECES):
            self.read(element, paragraph, run)
        elif run is None or not run.hidden:
            text = _PIECES.get(name) or element.text or ""
            if name == "sym":
                text = symbol(attribute(element, "font"), attribute(element, "char"))
            elif run and name == "t":
                text = shown(text, run.font, raised=run.raised)
            self._add(text, paragraph, run)

    def _add(self, text: str, paragraph: _Paragraph, run: _Run | None, reading: str = "") -> None:
        paragraph.add(text, reading)
        if self._cell and text.strip():
            self._cell.plain = self._cell.plain or not ((run and run.bold) or paragraph.style.bold)

    def _paragraph(self, element: Element) -> None:
        own = properties(element, "w:pPr")
        paragraph = _Paragraph(self._styles.of(value(own.get("pStyle"))), self._carried)
        self._carried = []
        self.read(element, paragraph)
        if _DELETED.isdisjoint(properties(own.get("rPr"), ".")):
            self._end(paragraph, own)
        else:
            paragraph.add("")
            self._carried = paragraph.parts  # its end was deleted: it and the next one are one paragraph

    def _end(self, paragraph: _Paragraph, own: Mapping[str, Element]) -> None:
        paragraph.add("")
        label = self._label(paragraph.style, own)
        text = "".join(paragraph.parts).strip()
        outline = outline_level(own.get("outlineLvl")) or paragraph.style.outline
        if not text:
            return
        if self._cell:
            self._cell.paragraphs.append(label + text)
        elif outline:
            self._built.heading(label + text, outline)
        else:
            self._built.paragraph(label + text)

    def _label(self, style: Style, own: Mapping[str, Element]) -> str:
        """The number of a paragraph that is an item of a list, which is counted."""
        named, level = value(own.get("numPr"), "w:numId"), value(own.get("numPr"), "w:ilvl")
        number = named or style.number
        if number in ("", "0"):
            return ""
        at = whole_number(level, LAST_LEVEL) if level or named else style.level
        if not level:
            at = self._lists.level_of(number, value(own.get("pStyle")), at)
        return self._lists.label(number, at)

    def _table(self, element: Element) -> None:
        look = "w:tblPr/w:tblLook"
        first, bits = attribute(element, "firstRow", look), value(element, look)
        differs = switched(first) if first else bits[-2:-1].lower() in _FIRST_ROW_BIT
        self._rows = []
        self.read(element)
        style = self._styles.of(value(element, "w:tblPr/w:tblStyle"))
        add_table(self._built, self._rows, first_row_differs=differs and style.header_row)
        self._rows = None

    def _row(self, element: Element, rows: list[Row]) -> None:
        own = properties(element, "w:trPr")
        row = Row(marked=is_on(own.get("tblHeader"), "."), deleted=not _DELETED.isdisjoint(own))
        if "gridBefore" in own:
            row.cells.append(Cell("", _span(own["gridBefore"])))
        rows.append(row)
        self.read(element)

    def _read_cell(self, element: Element, row: Row) -> None:
        self._cell = cell = _Cell()
        self.read(element)
        self._end_story()
        self._cell = None
        text = " ".join(" ".join(cell.paragraphs).split())
        own = properties(element, "w:tcPr")
        goes_on = "vMerge" in own and value(own["vMerge"]) != "restart"
        row.cells.append(Cell(text, _span(own.get("gridSpan")), goes_on=goes_on))
        fill, theme = (attribute(own.get("shd"), name) for name in ("fill", "themeFill"))
        shaded = fill not in _PLAIN_FILLS or bool(theme)
        row.strong = row.strong and (shaded or not cell.plain or not text)


def _span(element: Element) -> int:
    """The columns that a property says."""
    return max(1, whole_number(value(element), MOST_COLUMNS, 1))


def _text_of(element: Element) -> str:
    return "" if element is None else "".join(each.text or "" for each in element.iterfind(".//w:t", NAMES))


# KeyError for a part that is not there, RuntimeError for one with a password
_BROKEN = (zipfile.BadZipFile, zlib.error, KeyError, ValueError, RuntimeError, EOFError, OSError)


def read_docx(name: str, data: bytes) -> TextFile:
    """Read a Word document; ``ValueError`` if broken or too large, ``ImportError`` without lxml."""
    etree = needed("lxml.etree", f"{name}: reading DOCX", "files")
    try:
        with archive_of(data) as archive:
            return _read(Package(archive))
    except TooLarge as error:
        raise ValueError(f"{name}: {error}: split the document, or save it as plain text") from None
    except (etree.XMLSyntaxError, *_BROKEN) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:120]
        raise ValueError(
            f"{name}: got a DOCX that cannot be read ({reason}); expected a whole Word document: open it in a "
            "word processor and save it again"
        ) from None


def _read(package: Package) -> TextFile:
    main = package.targets("")["officeDocument"]
    parts = package.targets(main)
    styles = Styles(package.tree(parts.get("styles", "")))
    lists = Lists(package.tree(parts.get("numbering", "")), styles)
    built = TextBuilder()
    for part in (main, parts.get("footnotes", ""), parts.get("endnotes", "")):
        if (root := package.tree(part)) is not None:
            _Story(built, styles, lists).read(root)
    return built.converted()
