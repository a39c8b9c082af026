"""DOCX to text: headings by the styles' names, numbers of lists, rows of tables, formulas, notes at the end.

lxml reads the XML parts in one pass without a tree. Changes count as accepted: inserted text is read, deleted
text is not. Pictures, comments, headers and footers are left out, and no other file is opened.
"""

import re
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.docx_lists import LAST_LEVEL, Lists, Style, Styles, heading_level, is_on
from spscanner_rag.files.readers.docx_parts import (
    Package,
    PartReader,
    TooLarge,
    archive_of,
    value_of,
    word,
    word_attribute,
)
from spscanner_rag.files.readers.formulas import Formula
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

_UNREAD = {"del", "moveFrom", "instrText", "delText"}
_EARLIER = "Change"  # elements whose names end so hold properties from before a change
_PROPERTIES = {"pPr", "rPr", "tcPr", "trPr", "tblPr", "rubyPr"}
_STORIES = {"tc", "txbxContent", "body", "footnote", "endnote"}  # no paragraph goes on from one to the next
_FIRST_ROW_BIT = set("2367abef")  # hexadecimal digits with it
_MOST_KEPT = 5_000  # styles
_PLAIN_FILLS = {"", "auto", "FFFFFF", "ffffff"}


@dataclass(slots=True)
class _Paragraph:
    parts: list[str] = field(default_factory=list)
    reading: list[str] = field(default_factory=list)  # of the characters before, above which it stands (ruby)
    style: str = ""
    outline: int = 0  # level of a heading, from 1; 0 for none
    number: str = ""  # of the list that it is an item of
    level: int | None = None  # in that list
    goes_on: bool = False  # its end was deleted: it and the next one are one paragraph

    def add(self, text: str) -> None:
        if self.reading:
            self.parts.append(f"({''.join(self.reading)})")
            self.reading = []
        self.parts.append(text)


@dataclass(slots=True)
class _Run:
    hidden: bool = False
    bold: bool = False
    raised: bool = False
    font: str = ""


@dataclass(slots=True)
class _Cell:
    paragraphs: list[str] = field(default_factory=list)
    columns: int = 1
    goes_on: bool = False  # it is the rest of the cell above
    shaded: bool = False
    plain: bool = False  # some of its text is not bold


@dataclass(slots=True)
class _Table:
    rows: list[Row] = field(default_factory=list)
    row: Row = field(default_factory=Row)
    cell: _Cell = field(default_factory=_Cell)
    style: Style = field(default_factory=Style)
    first_row_differs: bool = False  # as its style says it


class _WordText(PartReader):
    """A target of lxml's parser."""

    def __init__(self, built: TextBuilder, styles: Styles, lists: Lists) -> None:
        super().__init__()
        self._built, self._styles, self._lists = built, styles, lists
        self._named: dict[str, Style] = {}
        self._depth = 0
        self._unread_from: int | None = None  # depth of the element whose content is not read
        self._in_text = False
        self._properties: list[str] = []  # the open elements that hold properties
        self._runs: list[_Run] = []
        self._ruby: list[str] = []  # the open elements of characters with a reading above them
        self._formula: Formula | None = None
        self._open: list[_Paragraph] = []  # several where a text box is in a paragraph
        self._carried: list[str] = []  # the text of paragraphs whose ends were deleted
        self._tables = 0  # open ones; the text of a table in a cell belongs to the cell
        self._table = _Table()

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        super().start(tag, attributes)
        self._depth += 1
        if self._unread_from is not None:
            return
        name = word(tag)
        if self._properties and name in ("del", "moveFrom"):
            self._deleted()
        elif tag == _FALLBACK or name in _UNREAD or name.endswith(_EARLIER):
            self._unread_from = self._depth
        elif tag.startswith(_MATH):
            math = tag.rpartition("}")[2]
            if self._formula is not None:
                self._formula.start(math, attributes)
            elif math == "oMath":
                self._formula = Formula()
        elif name in _PROPERTIES:
            self._properties.append(name)
        elif self._properties:
            self._property(name, attributes)
        else:
            self._content(name, attributes)

    def _deleted(self) -> None:
        """The end of a paragraph or a row was deleted."""
        if self._properties[-1] == "trPr" and self._tables == 1:
            self._table.row.deleted = True
        elif self._properties == ["pPr", "rPr"] and self._open:
            self._open[-1].goes_on = True

    def _content(self, name: str, attributes: Mapping[str, str]) -> None:
        match name:
            case "p":
                self._open.append(_Paragraph(parts=self._carried))
                self._carried = []
            case "r":
                self._runs.append(_Run())
            case "tbl":
                self._tables += 1
                if self._tables == 1:
                    self._table = _Table()
            case "tr" if self._tables == 1:
                self._table.row = Row()
            case "tc" if self._tables == 1:
                self._table.cell = _Cell()
            case "rt" | "rubyBase":
                self._ruby.append(name)
            case _ if self._open:
                self._piece(name, attributes)

    def _piece(self, name: str, attributes: Mapping[str, str]) -> None:
        hidden = bool(self._runs) and self._runs[-1].hidden
        match name:
            case "t":
                self._in_text = not hidden
            case _ if hidden:
                pass
            case "tab" | "ptab" if self._runs:
                self._add(" ")
            case "br" | "cr":
                self._add("\n")
            case "noBreakHyphen":
                self._add("-")
            case "sym":
                self._add(symbol(word_attribute(attributes, "font"), word_attribute(attributes, "char")))

    def _property(self, name: str, attributes: Mapping[str, str]) -> None:
        value = value_of(attributes)
        match self._properties[-1], name:
            case "rPr", ("vanish" | "b" | "rStyle" | "vertAlign" | "rFonts") if self._runs:
                self._note_run(self._runs[-1], name, value or word_attribute(attributes, "ascii"))
            case "pPr", _ if self._open:
                self._note_paragraph(self._open[-1], name, value)
            case _ if self._tables == 1:
                self._note_table(name, value, attributes)

    def _note_run(self, run: _Run, name: str, value: str) -> None:
        if name == "rStyle":
            style = self._style(value)
            run.hidden, run.bold = run.hidden or style.hidden, run.bold or style.bold
        elif name == "vanish":
            run.hidden = is_on(value)
        elif name == "vertAlign":
            run.raised = value == "superscript"
        elif name == "rFonts":
            run.font = value
        else:
            run.bold = is_on(value)

    def _note_paragraph(self, paragraph: _Paragraph, name: str, value: str) -> None:
        match name:
            case "pStyle":
                paragraph.style = value
            case "numId":
                paragraph.number = value
            case "ilvl":
                paragraph.level = whole_number(value, LAST_LEVEL)
            case "outlineLvl":
                paragraph.outline = heading_level(name, value)

    def _note_table(self, name: str, value: str, attributes: Mapping[str, str]) -> None:
        table, cell = self._table, self._table.cell
        match self._properties[-1], name:
            case "trPr", "tblHeader":
                table.row.marked = is_on(value)
            case "trPr", "gridBefore":
                table.row.cells.append(Cell("", max(1, whole_number(value, MOST_COLUMNS, 1))))
            case "tcPr", "gridSpan":
                cell.columns = max(1, whole_number(value, MOST_COLUMNS, 1))
            case "tcPr", "vMerge":
                cell.goes_on = value != "restart"
            case "tcPr", "shd":
                fill = word_attribute(attributes, "fill")
                cell.shaded = fill not in _PLAIN_FILLS or bool(word_attribute(attributes, "themeFill"))
            case "tblPr", "tblStyle":
                table.style = self._style(value)
            case "tblPr", "tblLook":
                first = word_attribute(attributes, "firstRow")
                table.first_row_differs = is_on(first) if first else value[-2:-1].lower() in _FIRST_ROW_BIT

    def end(self, tag: str) -> None:
        self._depth -= 1
        if self._unread_from is not None:
            if self._depth < self._unread_from:
                self._unread_from = None
            return
        name = word(tag)
        if self._formula is not None and tag.startswith(_MATH):
            if not tag.endswith("}oMath"):
                self._formula.end()
                return
            text, self._formula = self._formula.text(), None
            if self._open:
                self._add(text)
        elif name in _PROPERTIES:
            self._properties.pop()
        elif not self._properties:
            self._end(name)

    def _end(self, name: str) -> None:
        if name in _STORIES and self._carried:
            self._end_paragraph(_Paragraph(parts=self._carried))
            self._carried = []
        match name:
            case "t":
                self._in_text = False
            case "r" if self._runs:
                self._runs.pop()
            case "rt" | "rubyBase" if self._ruby:
                self._ruby.pop()
            case "p" if self._open:
                self._end_paragraph(self._open.pop())
            case "tc" if self._tables == 1:
                self._end_cell(self._table.cell)
            case "tr" if self._tables == 1:
                self._table.rows.append(self._table.row)
            case "tbl":
                self._tables -= 1
                if not self._tables:
                    differs = self._table.first_row_differs and self._table.style.header_row
                    add_table(self._built, self._table.rows, first_row_differs=differs)

    def data(self, text: str) -> None:
        if self._unread_from is not None:
            return
        if self._formula is not None:
            self._formula.data(text)
        elif self._in_text and self._open:
            self._add(shown(text, self._runs[-1].font, raised=self._runs[-1].raised) if self._runs else text)

    def _add(self, text: str) -> None:
        paragraph = self._open[-1]
        if self._ruby and self._ruby[-1] == "rt":
            paragraph.reading.append(text)
        elif self._ruby:
            paragraph.parts.append(text)
        else:
            paragraph.add(text)
        if self._tables and text.strip():
            bold = (self._runs and self._runs[-1].bold) or self._style(paragraph.style).bold
            self._table.cell.plain = self._table.cell.plain or not bold

    def _style(self, name: str) -> Style:
        if name not in self._named:
            if len(self._named) >= _MOST_KEPT:
                self._named.clear()
            self._named[name] = self._styles.of(name)
        return self._named[name]

    def _end_paragraph(self, paragraph: _Paragraph) -> None:
        paragraph.add("")
        if paragraph.goes_on:
            self._carried = paragraph.parts
            return
        style = self._style(paragraph.style)
        number, level = paragraph.number or style.number, paragraph.level
        label = ""
        if number and number != "0":
            own = style.level if level is None and not paragraph.number else level or 0
            of_style = self._lists.level_of(number, paragraph.style, own) if level is None else own
            label = self._lists.label(number, of_style)
        text = "".join(paragraph.parts).strip()
        if not text:
            return
        outline = paragraph.outline or style.outline
        if self._tables:
            self._table.cell.paragraphs.append(label + text)
        elif outline:
            self._built.heading(label + text, outline)
        else:
            self._built.paragraph(label + text)

    def _end_cell(self, cell: _Cell) -> None:
        text = " ".join(" ".join(cell.paragraphs).split())
        row = self._table.row
        row.cells.append(Cell(text, cell.columns, goes_on=cell.goes_on))
        row.strong = row.strong and (cell.shaded or not cell.plain or not text)


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
    styles = Styles()
    lists = Lists(styles)
    for kind, settings in (("styles", styles), ("numbering", lists)):
        package.read(parts.get(kind, ""), settings)
    built = TextBuilder()
    for part in (main, parts.get("footnotes"), parts.get("endnotes")):
        package.read(part or "", _WordText(built, styles, lists))
    return built.converted()
