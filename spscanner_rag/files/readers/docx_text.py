"""The text of a DOCX from the elements of a part: paragraphs, headings, items with their numbers, tables."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from spscanner_rag.files.readers.docx_lists import LAST_LEVEL, Lists, Style, Styles, heading_level, is_on
from spscanner_rag.files.readers.docx_parts import PartReader, value_of, word, word_attribute
from spscanner_rag.files.readers.docx_symbols import shown, symbol
from spscanner_rag.files.readers.formulas import Formula
from spscanner_rag.files.readers.numerals import whole_number
from spscanner_rag.files.readers.tables import MOST_COLUMNS, Cell, Row, add_table
from spscanner_rag.files.readers.text_builder import TextBuilder

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


class WordText(PartReader):
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
        """An element begins."""
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
            self._begin_formula(tag, attributes)
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

    def _begin_formula(self, tag: str, attributes: Mapping[str, str]) -> None:
        name = tag.rpartition("}")[2]
        if self._formula is not None:
            self._formula.start(name, attributes)
        elif name == "oMath":
            self._formula = Formula()

    def _content(self, name: str, attributes: Mapping[str, str]) -> None:
        """Begin an element of content."""
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
        """Read a piece of text, or begin one."""
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
        """Note a property of the innermost thing that has one."""
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
        """An element ends."""
        self._depth -= 1
        if self._unread_from is not None:
            if self._depth < self._unread_from:
                self._unread_from = None
            return
        name = word(tag)
        if self._formula is not None and tag.startswith(_MATH):
            self._end_formula(self._formula, tag.rpartition("}")[2])
        elif name in _PROPERTIES:
            self._properties.pop()
        elif not self._properties:
            self._end(name)

    def _end_formula(self, formula: Formula, name: str) -> None:
        if name != "oMath":
            formula.end()
            return
        self._formula = None
        if self._open:
            self._add(formula.text())

    def _end(self, name: str) -> None:
        """End an element of content."""
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
        """Text between tags."""
        if self._unread_from is not None:
            return
        if self._formula is not None:
            self._formula.data(text)
        elif self._in_text and self._open:
            self._add(shown(text, self._runs[-1].font, raised=self._runs[-1].raised) if self._runs else text)

    def _add(self, text: str) -> None:
        """Add text to the paragraph that is open."""
        paragraph = self._open[-1]
        if self._ruby and self._ruby[-1] == "rt":
            paragraph.reading.append(text)
        elif self._ruby:
            paragraph.parts.append(text)
        else:
            paragraph.add(text)
        if self._tables and text.strip() and not self._is_bold(paragraph):
            self._table.cell.plain = True

    def _is_bold(self, paragraph: _Paragraph) -> bool:
        return (bool(self._runs) and self._runs[-1].bold) or self._style(paragraph.style).bold

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
