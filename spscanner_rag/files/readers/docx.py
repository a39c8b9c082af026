"""DOCX to text: headings, list numbers, table rows, formulas, and notes.

Headings are known by their styles. Headers of pages stand at the beginning, once each,
and notes and footers at the end.

Tracked changes count as accepted: inserted text is read, deleted text is not. Text that
is struck out stands between "~~". Pictures and comments are left out, and no other file
is opened.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.docx_embedded import add_embedded
from spscanner_rag.files.readers.docx_lists import Lists
from spscanner_rag.files.readers.docx_styles import (
    LAST_LEVEL,
    Style,
    Styles,
    outline_level,
)
from spscanner_rag.files.readers.docx_xml import (
    NAMES,
    STRICT,
    WORD,
    attribute,
    is_on,
    properties,
    switched,
    value,
    word,
)
from spscanner_rag.files.readers.drawing_text import further_paragraphs
from spscanner_rag.files.readers.notation import (
    RAISED,
    formula_text,
    struck,
    struck_joined,
    symbol,
    symbols_of,
    whole_number,
)
from spscanner_rag.files.readers.text_builder import (
    MOST_COLUMNS,
    Cell,
    Row,
    TextBuilder,
    add_table,
)
from spscanner_rag.files.readers.zip_parts import (
    BROKEN,
    Element,
    Package,
    Relationship,
    TooLarge,
    archive_of,
    has_part_below,
    local_name,
)
from spscanner_rag.system.install_hints import import_extra

_LETTER = re.compile(r"[^\W\d_]")
_DIGITS = re.compile(r"[-+−]?\d{1,4}", re.ASCII)  # noqa: RUF001


_MATH = (
    "{http://schemas.openxmlformats.org/officeDocument/2006/math}oMath",
    "{http://purl.oclc.org/ooxml/officeDocument/math}oMath",
)
_REFERENCES = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
"""A second form of a text box for older programs."""

_DRAWINGS = {"relIds": "dm", "chart": "id"}
"""Elements for diagrams and charts, with the attribute that names their part."""

_UNREAD = {
    "del",
    "moveFrom",
    "instrText",
    "delText",
    "pPr",
    "rPr",
    "tcPr",
    "trPr",
    "tblPr",
    "rubyPr",
}
# no paragraph continues past their end
_STORIES = {
    "tc",
    "txbxContent",
    "body",
    "footnote",
    "endnote",
}
_DELETED = {"del", "moveFrom"}  # properties that mark an element as deleted
_PIECES = {"tab": " ", "ptab": " ", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_FIRST_ROW_BIT = set("2367abef")  # hexadecimal digits with this bit set
_PLAIN_FILLS = {"", "auto", "FFFFFF", "ffffff"}


@dataclass(slots=True)
class _Paragraph:
    style: Style
    parts: list[str] = field(default_factory=list)
    reading: str = ""  # how the preceding characters are read (ruby)

    def add(self, text: str, reading: str = "") -> None:
        if self.reading and not reading:
            self.parts.append(f"({self.reading})")
            self.reading = ""
        self.parts.append(text)
        self.reading += reading


def _formula(element: Element) -> str:
    """The text of a formula, apart from one right before it."""
    before = element.getprevious()
    gap = " " if before is not None and before.tag in _MATH else ""
    return gap + formula_text(element)


def _box_shown(field: Element) -> str:
    """What a box to be ticked shows."""
    ticked = is_on(field, "w:checked", is_on(field, "w:default"))
    return "\u2612" if ticked else "\u2610"


def _choice_shown(field: Element) -> str:
    """What a list to choose from shows."""
    entries = field.findall("w:listEntry", NAMES)
    chosen = value(field, "w:result") or value(field, "w:default")
    number = whole_number(chosen, max(0, len(entries) - 1))
    return value(entries[number]) if entries else ""


_FORM_FIELDS = {"checkBox": _box_shown, "ddList": _choice_shown}


class _Run:
    def __init__(self, element: Element, styles: Styles) -> None:
        run_properties = properties(element, "w:rPr")
        style = styles.of(value(run_properties.get("rStyle")))
        self.hidden = is_on(run_properties.get("vanish"), ".", style.hidden)
        self.bold = is_on(run_properties.get("b"), ".", style.bold)
        self.raised = value(run_properties.get("vertAlign")) == "superscript"
        struck = ("strike", "dstrike")
        self.struck = any(is_on(run_properties.get(name), ".") for name in struck)
        self.font = attribute(run_properties.get("rFonts"), "ascii")


def _text_of_piece(element: Element, name: str, run: _Run | None) -> str:
    """What is shown of a text, a symbol or white space."""
    text = _PIECES.get(name) or element.text or ""
    if name == "sym":
        text = symbol(attribute(element, "font"), attribute(element, "char"))
    elif run and name == "t":
        text = symbols_of(run.font, text)
        if run.raised and _DIGITS.fullmatch(text):
            # else "10" and a raised "3" would be 103
            text = text.translate(RAISED)
    return struck(text) if run and run.struck else text


@dataclass(slots=True)
class _Cell:
    paragraphs: list[str] = field(default_factory=list)
    plain: bool = False  # whether some of its text is not bold


class _Story:
    """Reads one part of the document: its main text, footnotes or endnotes."""

    def __init__(
        self,
        built: TextBuilder,
        styles: Styles,
        lists: Lists,
        package: Package,
        relationships: Mapping[str, Relationship],
    ) -> None:
        self._built = built
        self._package = package
        self._relationships = relationships
        self.n_deleted = 0  # deletions, which are left out
        self._styles = styles
        self._lists = lists
        self._carried: list[str] = []  # text of paragraphs whose ends were deleted
        self._rows: list[Row] | None = None  # rows of the open table
        # the open cell; it gets all text inside, also of nested tables
        self._cell: _Cell | None = None
        self._drawn: list[str] = []  # text of diagrams and charts of the paragraph

    def add(
        self,
        parent: Element,
        paragraph: _Paragraph | None = None,
        run: _Run | None = None,
    ) -> None:
        """Read the content of an element in the open paragraph and run."""
        for child in parent:
            name = word(child.tag)
            if self._is_unread(child, name):
                continue
            match name:
                case "p":
                    self._paragraph(child)
                case "r":
                    self.add(child, paragraph, _Run(child, self._styles))
                case "altChunk":
                    self._embedded(child)
                case "tbl" | "tr" | "tc" if self._reads_table_part(child, name):
                    pass
                case _ if paragraph:
                    self._piece(child, name, paragraph, run)
                case _:
                    self.add(child)
            if name in _STORIES:
                self._end_story()

    def _is_unread(self, element: Element, name: str) -> bool:
        """True for an element that is not on the page, such as deleted text."""
        if name in _DELETED and len(element):
            self.n_deleted += 1
        is_unread = name in _UNREAD or name.endswith("Change")
        return is_unread or element.tag == _FALLBACK

    def _reads_table_part(self, element: Element, name: str) -> bool:
        """Read a table, row or cell, or return False for one read as what is in it."""
        if name == "tbl" and self._rows is None:
            self._table(element)
        elif name == "tr" and self._rows is not None and self._cell is None:
            self._row(element, self._rows)
        elif name == "tc" and self._rows and self._cell is None:
            self._read_cell(element, self._rows[-1])
        else:
            return False
        return True

    def _embedded(self, element: Element) -> None:
        """Read a part that is embedded whole."""
        chunk = self._relationships.get(element.get(f"{{{_REFERENCES}}}id", ""))
        if self._cell is None:
            add_embedded(self._built, self._package, chunk)
            return
        in_cell = TextBuilder()
        add_embedded(in_cell, self._package, chunk)
        document = in_cell.converted()
        self._cell.paragraphs.append(document.text)
        for note in document.notes:
            self._built.note(note)

    def _end_story(self) -> None:
        if self._carried:
            self._end(_Paragraph(Style(), self._carried), {})
            self._carried = []

    def _piece(
        self, element: Element, name: str, paragraph: _Paragraph, run: _Run | None
    ) -> None:
        """Read a part of a paragraph: text, a symbol, or an element with some."""
        if element.tag in _MATH:
            self._add(_formula(element), paragraph, run)
        elif name == "ruby":
            self._add_ruby(element, paragraph, run)
        elif local_name(element) in _DRAWINGS:
            self._draw(element)
        elif name in _FORM_FIELDS:
            self._add(_FORM_FIELDS[name](element), paragraph, run)
        elif name not in ("t", "sym", *_PIECES):
            self.add(element, paragraph, run)
        elif run is None or not run.hidden:
            self._add(_text_of_piece(element, name, run), paragraph, run)

    def _add_ruby(
        self, element: Element, paragraph: _Paragraph, run: _Run | None
    ) -> None:
        """Add characters with how they are read."""
        reading = _text_of(element.find("w:rt", NAMES))
        base = _text_of(element.find("w:rubyBase", NAMES))
        self._add(base, paragraph, run, reading)

    def _draw(self, element: Element) -> None:
        """Keep the text of a diagram or a chart, which follows the paragraph."""
        key = f"{{{_REFERENCES}}}{_DRAWINGS[local_name(element)]}"
        relationship = self._relationships.get(element.get(key, ""))
        if relationship is not None:
            self._drawn += further_paragraphs(self._package, relationship)

    def _add(
        self, text: str, paragraph: _Paragraph, run: _Run | None, reading: str = ""
    ) -> None:
        paragraph.add(text, reading)
        if self._cell and text.strip():
            self._cell.plain = self._cell.plain or not (
                (run and run.bold) or paragraph.style.bold
            )

    def _paragraph(self, element: Element) -> None:
        paragraph_properties = properties(element, "w:pPr")
        paragraph = _Paragraph(
            self._styles.of(value(paragraph_properties.get("pStyle"))), self._carried
        )
        self._carried = []
        self.add(element, paragraph)
        ends = _DELETED.isdisjoint(properties(paragraph_properties.get("rPr"), "."))
        drop_cap = attribute(paragraph_properties.get("framePr"), "dropCap")
        if ends and drop_cap in ("", "none"):
            self._end(paragraph, paragraph_properties)
        else:
            paragraph.add("")
            # its end was deleted, or it is the large first letter of the next one
            self._carried = paragraph.parts
        for text in self._drawn:
            if self._cell:
                self._cell.paragraphs.append(text)
            else:
                self._built.paragraph(text)
        self._drawn = []

    def _end(
        self, paragraph: _Paragraph, paragraph_properties: Mapping[str, Element]
    ) -> None:
        paragraph.add("")
        label = self._label(paragraph.style, paragraph_properties)
        text = struck_joined("".join(paragraph.parts)).strip()
        outline = (
            outline_level(paragraph_properties.get("outlineLvl"))
            or paragraph.style.outline
        )
        if not text:
            return
        if self._cell:
            self._cell.paragraphs.append(label + text)
        elif outline:
            self._built.heading(label + text, outline)
        else:
            self._built.paragraph(label + text)

    def _label(self, style: Style, paragraph_properties: Mapping[str, Element]) -> str:
        """The marker of a paragraph, which is counted if it is a list item.

        Empty if it is not.
        """
        named = value(paragraph_properties.get("numPr"), "w:numId")
        level = value(paragraph_properties.get("numPr"), "w:ilvl")
        number = named or style.number
        if number in ("", "0"):
            return ""
        at = whole_number(level, LAST_LEVEL) if level or named else style.level
        return self._lists.label(
            number, at, "" if level else value(paragraph_properties.get("pStyle"))
        )

    def _table(self, element: Element) -> None:
        look = "w:tblPr/w:tblLook"
        first = attribute(element, "firstRow", look)
        bits = value(element, look)
        differs = switched(first) if first else bits[-2:-1].lower() in _FIRST_ROW_BIT
        self._rows = []
        self.add(element)
        style = self._styles.of(value(element, "w:tblPr/w:tblStyle"))
        add_table(
            self._built, self._rows, first_row_differs=differs and style.header_row
        )
        self._rows = None

    def _row(self, element: Element, rows: list[Row]) -> None:
        row_properties = properties(element, "w:trPr")
        row = Row(
            marked=is_on(row_properties.get("tblHeader"), "."),
            deleted=not _DELETED.isdisjoint(row_properties),
        )
        if "gridBefore" in row_properties:
            row.cells.append(Cell("", _span(row_properties["gridBefore"])))
        rows.append(row)
        self.add(element)

    def _read_cell(self, element: Element, row: Row) -> None:
        self._cell = cell = _Cell()
        self.add(element)
        self._end_story()
        self._cell = None
        text = " ".join(" ".join(cell.paragraphs).split())
        cell_properties = properties(element, "w:tcPr")
        goes_on = (
            "vMerge" in cell_properties
            and value(cell_properties["vMerge"]) != "restart"
        )
        row.cells.append(
            Cell(text, _span(cell_properties.get("gridSpan")), goes_on=goes_on)
        )
        fill, theme = (
            attribute(cell_properties.get("shd"), name)
            for name in ("fill", "themeFill")
        )
        shaded = fill not in _PLAIN_FILLS or bool(theme)
        row.strong = row.strong and (shaded or not cell.plain or not text)


def _span(element: Element) -> int:
    """The number of columns that a property sets."""
    return max(1, whole_number(value(element), MOST_COLUMNS, 1))


def _text_of(element: Element) -> str:
    if element is None:
        return ""
    return "".join(
        text_element.text or "" for text_element in element.iterfind(".//w:t", NAMES)
    )


def is_docx(data: bytes) -> bool:
    """Return whether a file is a ZIP archive with the parts of a DOCX."""
    return has_part_below(data, "word/")


def read_docx(data: bytes) -> TextFile:
    """Read a Word document.

    ``ValueError`` if it is broken or too large, ``ImportError`` without lxml.
    """
    etree = import_extra("lxml.etree", "reading DOCX", "files")
    try:
        return _read(Package(archive_of(data), {STRICT: WORD.encode()}))
    except TooLarge as error:
        raise ValueError(
            f"{error}: split the document, or save it as plain text"
        ) from None
    except (etree.XMLSyntaxError, *BROKEN) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:120]
        raise ValueError(
            f"got a DOCX that cannot be read ({reason}); expected a complete Word"
            " document: open it in a word processor and save it again"
        ) from None


def _read(package: Package) -> TextFile:
    main = package.targets("")["officeDocument"]
    parts = package.targets(main)
    styles = Styles(package.tree(parts.get("styles", "")))
    lists = Lists(package.tree(parts.get("numbering", "")), styles)
    built = TextBuilder()
    relationships = package.relationships(main)
    edges: dict[str, list[str]] = {"header": [], "footer": []}
    for relationship in relationships.values():
        edges.get(relationship.kind, []).append(relationship.path)
    _add_edges(built, package, edges["header"], styles, lists)
    n_deleted = 0
    for part in (main, parts.get("footnotes", ""), parts.get("endnotes", "")):
        if (root := package.tree(part)) is not None:
            story = _Story(built, styles, lists, package, package.relationships(part))
            story.add(root)
            n_deleted += story.n_deleted
    _add_edges(built, package, edges["footer"], styles, lists)
    if n_deleted:
        built.note(f"left out {n_deleted:,} deletions that are tracked changes")
    comments = package.tree(parts.get("comments", ""))
    if comments is not None and (n_comments := len(comments)):
        built.note(f"left out {n_comments:,} comments, which are not on the page")
    return built.converted()


def _add_edges(
    built: TextBuilder,
    package: Package,
    paths: Sequence[str],
    styles: Styles,
    lists: Lists,
) -> None:
    """Add headers or footers of pages, each text once."""
    texts: set[str] = set()
    for path in sorted(set(paths)):
        edge = TextBuilder()
        story = _Story(edge, styles, lists, package, package.relationships(path))
        story.add(package.tree(path))
        document = edge.converted()
        # A number of a page alone is no text.
        if document.text in texts or not _LETTER.search(document.text):
            continue
        texts.add(document.text)
        built.document(document)
