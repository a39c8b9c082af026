"""DOCX to text: headings, list numbers, table rows, formulas, and notes.

Headings are known by their styles; notes stand at the end.

Tracked changes count as accepted: inserted text is read, deleted text is not. Pictures,
comments, headers and footers are left out, and no other file is opened.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.notation import (
    RAISED,
    formula_text,
    numeral,
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
    TooLarge,
    archive_of,
    has_part_below,
)
from spscanner_rag.system.install_hints import import_extra

_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
NAMES = {"w": _WORD}
_STRICT = (  # the same elements in the strict form
    b"http://purl.oclc.org/ooxml/wordprocessingml/main"
)


@lru_cache(256)  # a document has millions of elements, but few names
def word(tag: object) -> str:
    """The name of an element in Word's namespace.

    Empty for others.
    """
    qualified = str(tag)  # lxml gives functions as tags of comments
    prefix = f"{{{_WORD}}}"
    return qualified.removeprefix(prefix) if qualified.startswith(prefix) else ""


def attribute(element: Element, name: str, path: str = ".") -> str:
    """The value of a Word attribute of an element, or of one at a path below it.

    Empty if there is none.
    """
    target = None if element is None else element.find(path, NAMES)
    return "" if target is None else str(target.get(f"{{{_WORD}}}{name}", ""))


def value(element: Element, path: str = ".") -> str:
    """The value of a property's ``w:val``."""
    return attribute(element, "val", path)


def properties(element: Element, path: str) -> dict[str, Element]:
    """The properties at a path by name.

    They are found in one pass, because a document has hundreds of thousands.
    """
    target = None if element is None else element.find(path, NAMES)
    return {} if target is None else {word(child.tag): child for child in target}


def switched(text: str) -> bool:
    """True unless the text of a switch says that it is off."""
    return text not in ("0", "false", "off", "none")


def is_on(element: Element, path: str, default: bool = False) -> bool:
    """True for a property that is switched on, as one without a value is.

    ``default`` if it is missing.
    """
    switch = None if element is None else element.find(path, NAMES)
    return default if switch is None else switched(attribute(switch, "val"))


def is_docx(data: bytes) -> bool:
    """Return whether a file is a ZIP archive with the parts of a DOCX."""
    return has_part_below(data, "word/")


LAST_LEVEL = 8  # Word has nine levels, from 0
_MOST_PARENTS = 20  # styles based on one another; a circular reference ends here
_MOST_KEPT = 5_000  # styles in the cache
_MOST_NUMBER = 2**31
_LONGEST_LABEL = 60  # characters
_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)
_FORMS = {  # other formats are shown as 1, 2, 3
    "lowerLetter": "a",
    "upperLetter": "A",
    "lowerRoman": "i",
    "upperRoman": "I",
    "decimalZero": "01",
    "none": "",
}
_PLACE = re.compile(r"%([1-9])")


@dataclass(slots=True)
class Style:
    """What a style sets for its paragraphs or runs.

    A value is empty or 0 where the style sets nothing.
    """

    outline: int = 0  # heading level, from 1
    number: str = ""  # the list's number
    level: int = 0  # level in that list
    parent: str = ""
    bold: bool = False
    hidden: bool = False
    header_row: bool = False  # for a table: whether its first row looks different


def _style(element: Element) -> Style:
    name = value(element, "w:name")
    first_row = element.find("w:tblStylePr[@w:type='firstRow']", NAMES)
    heading = _HEADING.fullmatch(name)
    named = int(heading[1]) if heading else int(name.lower() == "title")
    return Style(
        named or outline_level(element.find("w:pPr/w:outlineLvl", NAMES)),
        value(element, "w:pPr/w:numPr/w:numId"),
        whole_number(value(element, "w:pPr/w:numPr/w:ilvl"), LAST_LEVEL),
        value(element, "w:basedOn"),
        is_on(element, "w:rPr/w:b"),
        is_on(element, "w:rPr/w:vanish"),
        is_on(first_row, ".//w:b") or is_on(first_row, ".//w:shd"),
    )


def _children(element: Element, path: str, key: str) -> list[tuple[str, Element]]:
    """The elements at a path, each with one of its attributes."""
    if element is None:
        return []
    return [(attribute(child, key), child) for child in element.iterfind(path, NAMES)]


class Styles:
    """The styles of a document, from its styles part."""

    def __init__(self, root: Element) -> None:
        self._all = {
            name: _style(style_element)
            for name, style_element in _children(root, "w:style", "styleId")
            if name
        }
        self.of = lru_cache(_MOST_KEPT)(self._of)

    def _of(self, name: str) -> Style:
        """A style with what it inherits from the styles that it is based on."""
        style = replace(self._all.get(name, Style()))
        for _ in range(_MOST_PARENTS):
            if not (parent := self._all.get(style.parent)):
                break
            if not style.number:
                style.number = parent.number
                style.level = parent.level
            style.outline = style.outline or parent.outline
            style.bold = style.bold or parent.bold
            style.hidden = style.hidden or parent.hidden
            style.header_row = style.header_row or parent.header_row
            style.parent = parent.parent
        return style


def outline_level(element: Element) -> int:
    """The heading level, from 1, that a property sets; 0 for none."""
    return (whole_number(value(element), LAST_LEVEL + 1, LAST_LEVEL + 1) + 1) % (
        LAST_LEVEL + 2
    )


@dataclass(slots=True)
class _Level:
    start: int = 1
    format: str = "decimal"
    text: str | None = None  # such as "%1.%2)"
    only_digits: bool = False  # also for the numbers of other levels
    # the level, from 1, whose items restart its numbers; 0 for none
    restarts_after: int | None = None
    style: str = ""  # the style whose paragraphs are on this level


class _List(NamedTuple):
    levels: dict[int, _Level]
    starts: dict[int, int]  # level -> number of the first item in this list
    # level -> number of the last item; shared by all lists of a definition
    counted: dict[int, int]


def _levels(element: Element, path: str) -> dict[int, _Level]:
    levels = {}
    for number, level in _children(element, path, "ilvl"):
        text, after = (
            level.find(path, NAMES) for path in ("w:lvlText", "w:lvlRestart")
        )
        levels[whole_number(number, LAST_LEVEL)] = _Level(
            whole_number(value(level, "w:start"), _MOST_NUMBER, 1),
            value(level, "w:numFmt") or "decimal",
            None if text is None else value(text)[:_LONGEST_LABEL],
            is_on(level, "w:isLgl"),
            None if after is None else whole_number(value(after), LAST_LEVEL),
            value(level, "w:pStyle"),
        )
    return levels


def _level_of_style(levels: Mapping[int, _Level], style: str, default: int) -> int:
    if style:
        for level, settings in levels.items():
            if settings.style == style:
                return level
    return default


class Lists:
    """The lists of a document, and the number of each list's last item."""

    def __init__(self, root: Element, styles: Styles) -> None:
        definitions: dict[str, tuple[dict[int, _Level], str, dict[int, int]]] = {
            name: (
                _levels(definition, "w:lvl"),
                value(definition, "w:numStyleLink"),
                {},
            )
            for name, definition in _children(root, "w:abstractNum", "abstractNumId")
        }
        lists = dict(_children(root, "w:num", "numId"))
        self._lists: dict[str, _List] = {}
        for number, list_element in lists.items():
            of = list_element
            for _ in range(_MOST_PARENTS):
                levels, style, counted = definitions.get(
                    value(of, "w:abstractNumId"), ({}, "", {})
                )
                if not style:  # otherwise a style's list has the definition
                    break
                of = lists.get(styles.of(style).number)
            starts = {}
            overrides = "w:lvlOverride[w:startOverride]"
            for level, override in _children(list_element, overrides, "ilvl"):
                start = whole_number(
                    value(override, "w:startOverride"), _MOST_NUMBER, 1
                )
                starts[whole_number(level, LAST_LEVEL)] = start
            levels = levels | _levels(list_element, "w:lvlOverride/w:lvl")
            self._lists[number] = _List(levels, starts, counted)

    def label(self, number: str, level: int, style: str = "") -> str:
        """Count an item, and return its marker: a dash, a number, or nothing.

        It counts on its style's level if there is one.
        """
        if number not in self._lists:
            return "- "
        levels, starts, counted = self._lists[number]
        level = _level_of_style(levels, style, level)
        at = levels.get(level, _Level())
        if level in starts:
            counted[level] = starts.pop(level)
        else:
            counted[level] = counted[level] + 1 if level in counted else at.start
        for deeper in range(level + 1, LAST_LEVEL + 1):
            after = levels[deeper].restarts_after if deeper in levels else None
            if after is None or level < after:
                counted.pop(deeper, None)
        if at.format == "bullet":
            return "- "
        text = at.text
        if text is None:
            text = "".join(f"%{position}." for position in range(1, level + 2))

        def shown(place: re.Match[str]) -> str:
            of = int(place[1]) - 1
            other = levels.get(of, _Level())
            form = "1" if at.only_digits else _FORMS.get(other.format, "1")
            if not form:
                return ""
            return numeral(counted.get(of, other.start), form, repeated=True)

        text = _PLACE.sub(shown, text)[:_LONGEST_LABEL].strip()
        return f"{text} " if text else ""


_DIGITS = re.compile(r"[-+−]?\d{1,4}", re.ASCII)  # noqa: RUF001


_MATH = (
    "{http://schemas.openxmlformats.org/officeDocument/2006/math}oMath",
    "{http://purl.oclc.org/ooxml/officeDocument/math}oMath",
)
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
"""A second form of a text box for older programs."""

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


class _Run:
    def __init__(self, element: Element, styles: Styles) -> None:
        run_properties = properties(element, "w:rPr")
        style = styles.of(value(run_properties.get("rStyle")))
        self.hidden = is_on(run_properties.get("vanish"), ".", style.hidden)
        self.bold = is_on(run_properties.get("b"), ".", style.bold)
        self.raised = value(run_properties.get("vertAlign")) == "superscript"
        self.font = attribute(run_properties.get("rFonts"), "ascii")


@dataclass(slots=True)
class _Cell:
    paragraphs: list[str] = field(default_factory=list)
    plain: bool = False  # whether some of its text is not bold


class _Story:
    """Reads one part of the document: its main text, footnotes or endnotes."""

    def __init__(self, built: TextBuilder, styles: Styles, lists: Lists) -> None:
        self._built = built
        self._styles = styles
        self._lists = lists
        self._carried: list[str] = []  # text of paragraphs whose ends were deleted
        self._rows: list[Row] | None = None  # rows of the open table
        # the open cell; it gets all text inside, also of nested tables
        self._cell: _Cell | None = None

    def add(
        self,
        parent: Element,
        paragraph: _Paragraph | None = None,
        run: _Run | None = None,
    ) -> None:
        """Read the content of an element in the open paragraph and run."""
        for child in parent:
            name = word(child.tag)
            if name in _UNREAD or name.endswith("Change") or child.tag == _FALLBACK:
                continue
            match name:
                case "p":
                    self._paragraph(child)
                case "r":
                    self.add(child, paragraph, _Run(child, self._styles))
                case "tbl" if self._rows is None:
                    self._table(child)
                case "tr" if self._rows is not None and self._cell is None:
                    self._row(child, self._rows)
                case "tc" if self._rows and self._cell is None:
                    self._read_cell(child, self._rows[-1])
                case _ if paragraph:
                    self._piece(child, name, paragraph, run)
                case _:
                    self.add(child)
            if name in _STORIES:
                self._end_story()

    def _end_story(self) -> None:
        if self._carried:
            self._end(_Paragraph(Style(), self._carried), {})
            self._carried = []

    def _piece(
        self, element: Element, name: str, paragraph: _Paragraph, run: _Run | None
    ) -> None:
        """Read a part of a paragraph: text, a symbol, or an element with some."""
        if element.tag in _MATH:
            self._add(formula_text(element), paragraph, run)
        elif name == "ruby":
            reading, base = (
                _text_of(element.find(f"w:{part}", NAMES))
                for part in ("rt", "rubyBase")
            )
            self._add(base, paragraph, run, reading)
        elif name not in ("t", "sym", *_PIECES):
            self.add(element, paragraph, run)
        elif run is None or not run.hidden:
            text = _PIECES.get(name) or element.text or ""
            if name == "sym":
                text = symbol(attribute(element, "font"), attribute(element, "char"))
            elif run and name == "t":
                text = symbols_of(run.font, text)
                if run.raised and _DIGITS.fullmatch(text):
                    # else "10" and a raised "3" would be 103
                    text = text.translate(RAISED)
            self._add(text, paragraph, run)

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
        if _DELETED.isdisjoint(properties(paragraph_properties.get("rPr"), ".")):
            self._end(paragraph, paragraph_properties)
        else:
            paragraph.add("")
            # its end was deleted, so it continues in the next one
            self._carried = paragraph.parts

    def _end(
        self, paragraph: _Paragraph, paragraph_properties: Mapping[str, Element]
    ) -> None:
        paragraph.add("")
        label = self._label(paragraph.style, paragraph_properties)
        text = "".join(paragraph.parts).strip()
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


def read_docx(data: bytes) -> TextFile:
    """Read a Word document.

    ``ValueError`` if it is broken or too large, ``ImportError`` without lxml.
    """
    etree = import_extra("lxml.etree", "reading DOCX", "files")
    try:
        return _read(Package(archive_of(data), {_STRICT: _WORD.encode()}))
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
    for part in (main, parts.get("footnotes", ""), parts.get("endnotes", "")):
        if (root := package.tree(part)) is not None:
            _Story(built, styles, lists).add(root)
    return built.converted()
