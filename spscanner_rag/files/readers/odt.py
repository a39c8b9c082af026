"""Reads OpenDocument texts and presentations: headings, lists, tables and notes.

Tracked changes count as accepted. Comments are counted in a note, not read. No other
file is opened.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.notation import (
    STRUCK_MARK,
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
from spscanner_rag.files.readers.zip_parts import (
    Element,
    Package,
    archive_of,
    attribute_of,
    errors_told,
    has_media_type,
    local_name,
)

_TEXTS = (
    "application/vnd.oasis.opendocument.text",
    "application/vnd.oasis.opendocument.text-template",
    "application/vnd.oasis.opendocument.presentation",
)
_LINE = ("style", "type")  # of a line through text
_LEAVES_OUT = {"tracked-changes", "change", "annotation-end", "forms", "script"}
_LEAVES_OUT |= {"title", "desc", "sequence-decls", "variable-decls", "hidden-text"}
_LEAVES_OUT |= {"user-field-decls", "table-column", "table-columns", "bookmark"}
_BOXES = {"frame", "custom-shape", "g", "rect", "text-box"}
_EDGES = (
    "header",
    "header-left",
    "header-first",
    "footer",
    "footer-left",
    "footer-first",
)
_MOST_SPACES = 1_000  # that one element may stand for
_MOST_LEVEL = 10
_BULLET = "- "


@dataclass(slots=True)
class _Level:
    """How the items of a level of a list are numbered."""

    form: str = ""  # "1", "a", "A", "i" or "I"; "" for bullets
    before: str = ""
    after: str = "."
    start: int = 1


def is_odt(data: bytes) -> bool:
    """Return whether a file is a text or a presentation of OpenDocument."""
    return has_media_type(data, _TEXTS)


def read_odt(data: bytes) -> TextFile:
    """Read an OpenDocument text or presentation.

    ``ValueError`` if it is broken, encrypted or too large, ``ImportError`` without
    lxml.
    """
    with errors_told("ODT", "an", "a word processor", "split the document"):
        return _read(Package(archive_of(data)))


def _read(package: Package) -> TextFile:
    manifest = package.tree("META-INF/manifest.xml", may_have_doctype=True)
    for _ in () if manifest is None else manifest.iter("{*}encryption-data"):
        raise ValueError("it has a password; save it without one")
    content = package.tree("content.xml")
    if content is None:
        raise ValueError("its content.xml is missing")
    styles = package.tree("styles.xml")
    story = _Story(
        _list_styles(styles) | _list_styles(content),
        _struck_styles(styles) | _struck_styles(content),
    )
    body = content.find("{*}body")
    story.add(body if body is not None else content)
    story.add_edges(styles)
    objects = [name for name in package.names if name.endswith("/content.xml")]
    if objects:
        story.built.note(f"embedded objects are left out ({len(objects):,})")
    if story.comments:
        story.built.note(f"comments are left out ({story.comments:,})")
    return story.built.converted()


def _list_styles(root: Element | None) -> dict[str, dict[int, _Level]]:
    styles: dict[str, dict[int, _Level]] = {}
    for style in () if root is None else root.iter("{*}list-style"):
        levels: dict[int, _Level] = {}
        for element in style.iterfind("{*}list-level-style-number"):
            number = whole_number(attribute_of(element, "level"), _MOST_LEVEL, 1)
            levels[number] = _Level(
                attribute_of(element, "num-format"),
                attribute_of(element, "num-prefix"),
                attribute_of(element, "num-suffix"),
                whole_number(attribute_of(element, "start-value"), 2**31, 1),
            )
        styles[attribute_of(style, "name")] = levels
    return styles


def _struck_styles(root: Element | None) -> set[str]:
    """The names of the styles of struck text."""
    names: set[str] = set()
    for style in () if root is None else root.iter("{*}style"):
        for look in style.iterfind("{*}text-properties"):
            lines = [attribute_of(look, f"text-line-through-{key}") for key in _LINE]
            if any(line not in ("", "none") for line in lines):
                names.add(attribute_of(style, "name"))
    return names


class _Story:
    """Builds the text of a document while walking its elements."""

    def __init__(
        self,
        list_styles: Mapping[str, Mapping[int, _Level]],
        struck_styles: Collection[str],
    ) -> None:
        self.built = TextBuilder()
        self.comments = 0
        self._list_styles = list_styles
        self._struck_styles = struck_styles
        self._marker = ""  # before the next paragraph
        self._slides = 0
        self._next_numbers: dict[str, int] = {}  # of lists, by their styles
        self._further: list[Element] = []  # notes and boxes of the last paragraph

    def add(self, element: Element) -> None:
        """Add what an element contains, in order."""
        for child in element:
            name = local_name(child)
            if name in _LEAVES_OUT:
                continue
            if name == "annotation":
                self.comments += 1
            elif name == "page" and "drawing" in child.tag:
                self._add_slide(child)
            elif name in ("p", "h"):
                self._add_paragraph(child, name)
            elif name == "list":
                self._add_list(child, attribute_of(child, "style-name"), 1)
            elif name == "table":
                self._add_table(child)
            else:
                self.add(child)

    def add_edges(self, styles: Element | None) -> None:
        """Add the headers and footers of pages, each once."""
        texts: set[str] = set()
        names = [f"{{*}}{name}" for name in _EDGES]
        for edge in () if styles is None else styles.iter(*names):
            text = "".join(edge.itertext()).strip()
            if text and text not in texts:
                texts.add(text)
                self.built.place(f"page {local_name(edge).partition('-')[0]}")
                self.add(edge)

    def _add_slide(self, slide: Element) -> None:
        self._slides += 1
        self.built.place(f"slide {self._slides}")
        self.built.end_headings()
        title = _title_of(slide)
        if title is not None:
            paragraphs = [self._text_of(text) for text in title.iter("{*}p", "{*}h")]
            self.built.heading(" ".join(filter(None, paragraphs)), 1)
            slide.remove(title)
        self.add(slide)

    def _add_paragraph(self, element: Element, name: str) -> None:
        text = self._text_of(element)
        level = whole_number(attribute_of(element, "outline-level"), _MOST_LEVEL, 1)
        if text:
            text = self._marker + text
            if name == "h":
                self.built.heading(text, level)
            elif self._marker:
                self.built.item(text)
            else:
                self.built.paragraph(text)
            self._marker = ""
        further = self._further
        self._further = []
        for inner in further:
            self.add(inner)

    def _add_list(self, element: Element, style: str, level: int) -> None:
        numbering = self._list_styles.get(style, {}).get(level)
        number = numbering.start if numbering else 1
        if level == 1 and _continues(element):
            number = self._next_numbers.get(style, number)
        for item in element:
            if local_name(item) not in ("list-item", "list-header"):
                continue
            number = whole_number(attribute_of(item, "start-value"), 2**31, number)
            if local_name(item) == "list-item":
                self._marker = _marker(numbering, number)
                number += 1
            for child in item:
                if local_name(child) == "list":
                    inner_style = attribute_of(child, "style-name") or style
                    self._add_list(child, inner_style, level + 1)
                else:
                    self._add_one(child)
            self._marker = ""
        if level == 1:
            self._next_numbers[style] = number

    def _add_one(self, child: Element) -> None:
        """Add an element that is not the only one of its parent."""
        if local_name(child) in ("p", "h"):
            self._add_paragraph(child, local_name(child))
        elif local_name(child) == "table":
            self._add_table(child)
        else:
            self.add(child)

    def _add_table(self, table: Element) -> None:
        rows: list[Row] = []
        notes_before = len(self._further)
        for row_element in table.iter("{*}table-row"):
            if next(row_element.iterancestors("{*}table")) is not table:
                continue
            parent = local_name(row_element.getparent())
            row = Row(marked=parent == "table-header-rows", strong=False)
            for cell in row_element:
                if local_name(cell) == "table-cell":
                    row.cells.append(self._cell(cell))
            rows.append(row)
        add_table(self.built, rows)
        further = self._further[notes_before:]
        del self._further[notes_before:]
        for inner in further:
            self.add(inner)

    def _cell(self, cell: Element) -> Cell:
        texts: list[str] = []
        for paragraph in cell.iter("{*}p", "{*}h"):
            inside = paragraph.iterancestors("{*}note-body", "{*}annotation")
            if next(inside, None) is None:
                texts.append(self._text_of(paragraph))
        columns = whole_number(
            attribute_of(cell, "number-columns-spanned"), MOST_COLUMNS, 1
        )
        rows = whole_number(attribute_of(cell, "number-rows-spanned"), MOST_ROWS, 1)
        return Cell(" ".join(" ".join(texts).split()), max(1, columns), max(1, rows))

    def _text_of(self, element: Element) -> str:
        """The text of a paragraph, whose notes and boxes wait to be added."""
        parts = [element.text or ""]
        todo: list[Element] = list(
            reversed(element)
        )  # elements, and strings after them
        while todo:
            child = todo.pop()
            if isinstance(child, str):
                parts.append(child)
                continue
            todo.append(child.tail or "")
            name = local_name(child)
            if name == "note":
                parts.append(self._note_mark(child))
            elif name in _BOXES:
                self._further.append(child)
            elif name == "annotation":
                self.comments += 1
            elif name not in _LEAVES_OUT:
                if attribute_of(child, "style-name") in self._struck_styles:
                    parts.append(STRUCK_MARK)
                    todo.append(STRUCK_MARK)
                parts.append(_white_space(child, name) or child.text or "")
                todo += reversed(child)
        text = struck_joined("".join(parts))
        lines = [" ".join(line.split()) for line in text.split("\n")]
        return "\n".join(line for line in lines if line)

    def _note_mark(self, note: Element) -> str:
        """The mark of a footnote, whose body waits to be added."""
        citation = note.find("{*}note-citation")
        mark = "" if citation is None else "".join(citation.itertext()).strip()
        body = note.find("{*}note-body")
        if body is not None:
            self._further.append(body)
        return f"[{mark}]" if mark else ""


def _title_of(slide: Element) -> Element | None:
    """The frame of a slide's title, if it has text."""
    for frame in slide.iterfind("{*}frame"):
        is_title = attribute_of(frame, "class") == "title"
        if is_title and "".join(frame.itertext()).strip():
            return frame
    return None


def _white_space(element: Element, name: str) -> str:
    """What an element for white space stands for, empty for others."""
    if name == "s":
        return " " * whole_number(attribute_of(element, "c"), _MOST_SPACES, 1)
    return {"tab": "\t", "line-break": "\n"}.get(name, "")


def _continues(element: Element) -> bool:
    """Whether a list is numbered after the one before it."""
    is_continued = attribute_of(element, "continue-numbering") == "true"
    return is_continued or attribute_of(element, "continue-list") != ""


def _marker(numbering: _Level | None, number: int) -> str:
    if numbering is None or not numbering.form:
        return _BULLET
    return f"{numbering.before}{numeral(number, numbering.form)}{numbering.after} "
