"""Reads documents in XML: papers, patents, books, manuals, editions.

The names are those of JATS, DocBook, TEI, DITA, FictionBook and patents. Attributes
say how a document is laid out and linked, so they are left out, and counted in a note.
"""

import re
from collections.abc import Collection
from typing import Final, NamedTuple

from spscanner_rag.files.readers.base64_values import is_base64
from spscanner_rag.files.readers.json_records import LONGEST_FIELD
from spscanner_rag.files.readers.notation import whole_number
from spscanner_rag.files.readers.text_builder import (
    BETWEEN_CELLS,
    MOST_COLUMNS,
    MOST_ROWS,
    Cell,
    Row,
    TextBuilder,
    add_table,
)
from spscanner_rag.files.readers.xml_inline import (
    ALTERNATIVES,
    FORMATTING,
    NOTES,
    InlineText,
    formula_of,
    line_of,
    shown_alternative,
)
from spscanner_rag.files.readers.xml_shapes import (
    LONGEST_PATH,
    is_mixed,
    is_sentence,
    numbered_children,
)
from spscanner_rag.files.readers.zip_parts import Element, local_name

_FEWEST_PARAGRAPHS = 5  # of a document, unless its name says that it is one
_LEAST_SHARE = 3  # at least one of so many characters is in paragraphs
_DEEPEST_HEADING = 6
_FEWEST_SPACES = 3  # of a sentence among values

_DOCUMENTS = {"article", "book", "chapter", "TEI", "FictionBook", "topic", "concept"}
_PARAGRAPHS = {"p", "para", "simpara", "ab", "l"}
_TITLES = {"title", "head", "heading", "invention-title", "bridgehead"}
_TITLE_GROUPS = {"title-group": "article-title"}
_LABELS = {"label", "num"}
_ITEMS = {"item", "li", "list-item", "listitem"}
_TABLES = {"informaltable", "table", "tgroup"}
_ROWS = {"row", "tr"}
_ROW_GROUPS = {"table", "tbody", "tfoot", "tgroup", "thead"}
_CELLS = {"cell", "entry", "td", "th"}
_VERBATIM = {
    "codeblock",
    "eg",
    "literallayout",
    "preformat",
    "programlisting",
    "screen",
}
_FORMULAS = {"math", "tex-math"}
_FLOATS = {"boxed-text", "caption", "example", "fig", "figure", "formalpara", "listing"}
_BLOCKS: Final = frozenset(
    {
        *_PARAGRAPHS - {"l"},
        *_ITEMS,
        *_TABLES,
        *_VERBATIM - {"eg"},
        *_FLOATS,
        *("blockquote", "disp-formula", "disp-quote", "itemizedlist", "list", "lg"),
        *("ol", "orderedlist", "sp", "table-wrap", "ul", "variablelist"),
    }
)
"""Elements that begin a new paragraph within one."""

_NO_FIELDS = _LABELS | _PARAGRAPHS | _TITLES | _VERBATIM | _FORMULAS | _ITEMS
_SECTION = re.compile(
    r"(?:sub)*(?:ack|app|appendix|article|back|body|book|chapter|concept|conbody|div"
    r"|front|part|preface|ref-list|refsect|refsection|sec|sect|section|task|topic)\d*"
)
_SHOWN = ("alt", "title", "speaker")
"""Attributes with words for a reader."""


class Line(NamedTuple):
    """Text and elements of a paragraph that stand side by side."""

    text: str
    elements: list[Element]


class Task(NamedTuple):
    """What is to be added, and where it stands."""

    content: "Element | Line | list[Element]"  # a list: the fields of one record
    path: str
    level: int  # number of sections around it
    parent: str = ""  # the name of the element around it
    in_section: bool = False  # whether that is a section, whose title is a heading


def is_document(root: Element) -> bool:
    """Return whether a tree is a document for readers rather than data."""
    n_paragraphs = 0
    n_inside = 0
    todo = [root]
    while todo:
        element = todo.pop()
        if local_name(element) in _PARAGRAPHS:
            n_paragraphs += 1
            n_inside += len("".join(element.itertext()))
        else:
            todo += element
    if local_name(root) in _DOCUMENTS:
        return bool(n_paragraphs)
    if n_paragraphs < _FEWEST_PARAGRAPHS:
        return False
    n_characters = 0
    for text in root.itertext():
        if not is_base64(text):
            n_characters += len(text.strip())
    return n_inside * _LEAST_SHARE >= n_characters


class XmlProse:
    """Builds the text of a document, whose tree is walked without recursion."""

    def __init__(self) -> None:
        self.built = TextBuilder()
        self._with_blocks: set[Element] = set()
        self._with_others: set[Element] = set()  # than what formats letters
        self._label = ""  # of what comes next, such as "Table 1"
        self._begins_item = False
        self._base64 = 0

    def add(self, root: Element) -> None:
        """Add an element and all in it."""
        for part in root.iter("*"):
            if local_name(part) in _BLOCKS:
                _mark_around(part, self._with_blocks, NOTES)
            if local_name(part) not in FORMATTING:
                _mark_around(part, self._with_others)
        todo = [Task(root, f"/{local_name(root)}", 0)]
        while todo:
            task = todo.pop()
            following = self._added(task)
            todo += reversed(following)
        self._paragraph("")  # a label that nothing follows
        attributes = sum(len(part.attrib) for part in root.iter("*"))
        if attributes:
            self.built.note(f"attributes of a document are left out ({attributes:,})")
        if self._base64:
            self.built.note(f"values in base64 are left out ({self._base64:,})")

    def _added(self, task: Task) -> list[Task]:
        """Add what a task is about, and return what follows from it."""
        content = task.content
        self.built.place(task.path[-LONGEST_PATH:])
        if isinstance(content, list):
            self._add_fields(content)
            return []
        if isinstance(content, Line):
            self._add_line(content)
            return []
        name = local_name(content)
        self._add_words_of_attributes(content)
        if name in _LABELS and not len(content):
            self._paragraph("")
            self._label = line_of(content)
        elif name in _FORMULAS:
            self._paragraph(formula_of(content))
        elif name in _VERBATIM and content not in self._with_blocks:
            self._add_verbatim(content)
        elif name in _TABLES and _rows_of(content):
            return self._added_table(content, task)
        elif _is_heading(name, task):
            self._add_heading(content, task.level)
        elif _is_paragraph(content):
            return self._lines_of(content, task)
        else:
            self._begins_item = self._begins_item or name in _ITEMS
            return self._tasks_within(content, task)
        return []

    def _add_words_of_attributes(self, element: Element) -> None:
        for name in _SHOWN:
            words = (element.get(name) or "").strip()
            if words:
                self._paragraph(words)

    def _add_heading(self, element: Element, level: int) -> None:
        title = " ".join(filter(None, [self._label, line_of(element)]))
        self._label = ""
        self.built.heading(title, min(max(level, 1), _DEEPEST_HEADING))

    def _add_verbatim(self, element: Element) -> None:
        self._paragraph("")
        text = "".join(element.itertext()).strip("\n")
        if text.strip():
            self.built.fence(text)

    def _add_line(self, line: Line) -> None:
        inline = InlineText()
        inline.add_text(line.text)
        for element in line.elements:
            inline.add(element)
            inline.add_text(element.tail)
        self._paragraph(inline.line)
        for note in inline.notes:
            self._paragraph(note)

    def _paragraph(self, text: str) -> None:
        """Add a paragraph after the label that waits for it."""
        labelled = " ".join(filter(None, [self._label, text]))
        self._label = ""
        if not labelled:
            return
        if self._begins_item:
            self._begins_item = False
            self.built.item(labelled)
        else:
            self.built.paragraph(labelled)

    def _add_fields(self, elements: list[Element]) -> None:
        """Add short values side by side, each with its name."""
        fields: list[str] = []
        for element in elements:
            value = line_of(element)
            if is_base64(value):
                self._base64 += 1
                continue
            is_short = value.count(" ") < _FEWEST_SPACES  # as is "Lee et al."
            if len(value) > LONGEST_FIELD or (is_sentence(value) and not is_short):
                self._add_row(fields)
                fields = []
                self._paragraph(value)
            elif value:
                fields.append(f"{local_name(element)}: {value}")
        self._add_row(fields)

    def _add_row(self, fields: list[str]) -> None:
        if fields:
            self._paragraph("")
            self.built.row(BETWEEN_CELLS.join(fields))

    def _added_table(self, table: Element, task: Task) -> list[Task]:
        """Add a table's rows, and return what stands in it besides them."""
        rows = _rows_of(table)
        above: list[Task] = []
        for child in list(table):
            if local_name(child) not in _ROWS | _ROW_GROUPS:
                above.append(task._replace(content=child, in_section=False))
                table.remove(child)
        if above:  # such as its caption
            return [*above, task]
        self._paragraph("")
        add_table(self.built, list(map(_row_of, rows)), marked_again=True)
        return []

    def _lines_of(self, element: Element, task: Task) -> list[Task]:
        """The lines of a paragraph, and the blocks between them."""
        inside = task._replace(parent=local_name(element), in_section=False)
        tasks: list[Task] = []
        line = Line(element.text or "", [])
        for child in element:
            if local_name(child) in _BLOCKS or child in self._with_blocks:
                tasks += [inside._replace(content=line), inside._replace(content=child)]
                line = Line(child.tail or "", [])
            else:
                line.elements.append(child)
        tasks.append(inside._replace(content=line))
        return tasks

    def _tasks_within(self, element: Element, task: Task) -> list[Task]:
        """The children of an element; values side by side are one record."""
        if not len(element):
            return [task._replace(content=[element])]
        in_section = _is_section(element)
        inside = task._replace(
            level=task.level + in_section,
            parent=local_name(element),
            in_section=in_section,
        )
        if local_name(element) == ALTERNATIVES:
            return [inside._replace(content=shown_alternative(element))]
        tasks: list[Task] = []
        fields: list[Element] = []
        for child, path in numbered_children(element, task.path):
            if not self._is_field(child, inside):
                fields = []
                tasks.append(inside._replace(content=child, path=path))
            elif fields:
                fields.append(child)
            else:
                fields = [child]
                tasks.append(inside._replace(content=fields, path=path))
        return tasks

    def _is_field(self, element: Element, task: Task) -> bool:
        """Whether an element has a value alone, such as a year."""
        name = local_name(element)
        if not name or name in _NO_FIELDS or _is_heading(name, task):
            return False
        if is_mixed(element) or any(map(element.get, _SHOWN)):
            return False
        return element not in self._with_others


def _mark_around(
    element: Element, marked: set[Element], ends: Collection[str] = ()
) -> None:
    """Mark all elements around one, up to one whose name ``ends`` has.

    Around a marked one all are marked.
    """
    for around in element.iterancestors():
        if around in marked or local_name(around) in ends:
            return
        marked.add(around)


def _rows_of(table: Element) -> list[Element]:
    """The rows of a table, without those of tables in its cells."""
    rows: list[Element] = []
    todo = [table]
    while todo:
        element = todo.pop()
        if local_name(element) in _ROWS:
            rows.append(element)
        elif local_name(element) not in _CELLS:
            todo += reversed(element)
    if any(local_name(cell) in _CELLS for row in rows for cell in row):
        return rows
    return []


def _row_of(element: Element) -> Row:
    row = Row(marked=True, strong=False)
    in_head = local_name(element.getparent()) == "thead"
    for cell in element:
        if local_name(cell) not in _CELLS:
            continue
        columns = max(1, whole_number(cell.get("colspan", ""), MOST_COLUMNS, 1))
        more_rows = whole_number(cell.get("morerows", ""), MOST_ROWS, 0)
        rows = whole_number(cell.get("rowspan", ""), MOST_ROWS, 1 + more_rows)
        text = line_of(cell)
        row.cells.append(Cell(text, columns, max(1, rows)))
        is_head = in_head or local_name(cell) == "th" or cell.get("role") == "label"
        row.marked = row.marked and (is_head or not text)
    row.marked = row.marked and any(cell.text for cell in row.cells)
    return row


def _is_section(element: Element) -> bool:
    name = local_name(element)
    names = {local_name(child) for child in element}
    if name in _FLOATS | _TABLES or names.isdisjoint(_TITLES):
        return False
    if _SECTION.fullmatch(name):
        return True
    return any(child in _PARAGRAPHS or _SECTION.fullmatch(child) for child in names)


def _is_heading(name: str, task: Task) -> bool:
    if _TITLE_GROUPS.get(task.parent) == name or name == "invention-title":
        return True
    return task.in_section and name in _TITLES


def _is_paragraph(element: Element) -> bool:
    name = local_name(element)
    return not name or name in _PARAGRAPHS | _TITLES or is_mixed(element)
