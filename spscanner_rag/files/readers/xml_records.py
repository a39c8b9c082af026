"""Reads XML: paragraphs of documents, and records of data with their path.

An element whose children have only text is a record, as ``<book><title>...`` is. What
has text and elements side by side is a paragraph. Entities and other files are never
loaded.
"""

import re

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.base64_values import is_base64
from spscanner_rag.files.readers.html_values import without_html
from spscanner_rag.files.readers.json_records import LONGEST_FIELD
from spscanner_rag.files.readers.text_builder import BETWEEN_CELLS, TextBuilder
from spscanner_rag.files.readers.zip_parts import Element, local_name, xml_root
from spscanner_rag.system.install_hints import import_extra
from spscanner_rag.text.block_segmentation import LONGEST_UNIT

_BASE64 = "(base64)"
_LONGEST_PATH = 200  # characters
_FEWEST_SPACES = 7  # of a sentence without its full stop
_BEGINNING = b"<?xml"
_DOCTYPE = re.compile(rb"<!DOCTYPE\s+(?!html)[A-Za-z]", re.IGNORECASE)
_NOTES = {"note", "footnote", "endnote", "fn"}  # inside a paragraph
_ROWS = {"row", "tr", "Row"}
_TITLES = {"title", "head"}
_PARAGRAPHS = {"p", "para"}
_SECTIONS = {"sec", "section", "div", "chapter"}
_DEEPEST_HEADING = 6


def begins_as_xml(data: bytes) -> bool:
    """Return whether a file begins as XML does, and is no web page."""
    beginning = data[:1024].removeprefix(b"\xef\xbb\xbf").lstrip()
    if _DOCTYPE.match(beginning):
        return True
    return beginning.startswith(_BEGINNING) and b"<html" not in beginning


def read_xml(data: bytes) -> TextFile:
    """Read an XML file.

    ``ValueError`` if it is broken or nested too deep, ``ImportError`` without lxml.
    """
    etree = import_extra("lxml.etree", "reading XML", "files")
    try:
        root = xml_root(data)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise ValueError(
            f"got XML that cannot be read ({' '.join(str(error).split())[:200]});"
            " expected a complete XML file: repair it, or give it the ending .txt"
        ) from None
    document = _Xml()
    document.add(root)
    comments = data.count(b"<!--")
    if comments:
        document.built.note(f"comments are left out ({comments:,})")
    return document.built.converted()


class _Xml:
    """Builds the text of a tree, which is walked without recursion."""

    def __init__(self) -> None:
        self.built = TextBuilder()
        self._base64 = 0
        self._attributes_within = 0  # of elements within paragraphs
        self._names: list[str] = []  # of elements around the next record

    def add(self, root: Element) -> None:
        """Add an element and all in it."""
        # with the number of sections around each, and whether the last contains it
        todo = [(root, f"/{local_name(root)}", 0, False)]
        while todo:
            element, path, level, in_section = todo.pop()
            if in_section and _is_title(element):
                self._begin(path)
                level = min(level, _DEEPEST_HEADING)
                self.built.heading("".join(element.itertext()), level)
                continue
            is_section = _is_section(element)
            if _is_mixed(element):
                self._add_paragraph(element, path)
            elif _is_record(element) and not is_section:
                self._add_record(element, path)
            else:
                self._add_attributes(element, path)
                for child, child_path in reversed(_children(element, path)):
                    todo.append((child, child_path, level + is_section, is_section))
        if self._names:
            self.built.row(BETWEEN_CELLS.join(self._names))
        if self._attributes_within:
            self.built.note(
                "attributes within paragraphs are left out"
                f" ({self._attributes_within:,})"
            )
        if self._base64:
            self.built.note(f"values in base64 are left out ({self._base64:,})")

    def _add_attributes(self, element: Element, path: str) -> None:
        """Add the attributes of an element that contains records."""
        fields = self._attributes(element)
        if fields:
            self._add_row(path, [local_name(element), *fields])

    def _add_paragraph(self, element: Element, path: str) -> None:
        """Add a paragraph, and the notes in it after it."""
        self._add_attributes(element, path)
        notes: list[str] = []
        text = self._text_without_notes(element, notes)
        self._begin(path)
        self.built.paragraph(text)
        for note in notes:
            self.built.paragraph(note)

    def _text_without_notes(self, element: Element, notes: list[str]) -> str:
        """The text of an element, in which a mark stands for each note."""
        parts: list[str] = []
        note: Element | None = None  # the one that the walk is in
        for event, part in _walk(element):
            if event == "end" and part is not element:
                if note is None or note is part:
                    note = None
                    parts.append(part.tail or "")
            elif event == "end" or note is not None:
                continue
            elif not isinstance(part.tag, str):  # an entity, which is not expanded
                parts.append(str(part.text or ""))
            elif part is not element and local_name(part) in _NOTES:
                note = part
                mark = f"[{len(notes) + 1}]"
                parts.append(mark)
                notes.append(f"{mark} {' '.join(''.join(part.itertext()).split())}")
            else:
                parts.append(part.text or "")
                if part is not element:
                    parts += self._shown_within(part)
        return " ".join("".join(parts).split())

    def _shown_within(self, part: Element) -> list[str]:
        """The attributes of an element within a paragraph, if it has nothing else."""
        fields = [f" {field} " for field in self._attributes(part)]
        if not (part.text or len(part)):
            return fields
        self._attributes_within += len(fields)
        return []

    def _add_record(self, element: Element, path: str) -> None:
        fields = self._attributes(element)
        texts: list[tuple[str, str]] = []
        leaves = [element] if not len(element) else list(element)
        for leaf in leaves:
            name = local_name(leaf)
            if leaf is not element:
                fields += self._attributes(leaf, f"{name}.")
            text = self._shown(leaf.text or "")
            is_alone = leaf is element and (_is_prose(text) or name in _PARAGRAPHS)
            if len(text) > LONGEST_FIELD or is_alone:
                texts.append((name, text))
            elif text and local_name(element) in _ROWS:
                fields.append(text)
            elif text:
                fields.append(f"{name}: {text}")
        if fields:
            self._add_row(path, fields)
        for name, text in texts:
            self._begin(f"{path}/{name}" if len(element) else path)
            self.built.paragraph(text)

    def _add_row(self, path: str, fields: list[str]) -> None:
        self._begin(path)
        row: list[str] = []
        length = 0
        for text in fields:
            if row and length + len(text) > LONGEST_UNIT:
                self.built.row(BETWEEN_CELLS.join(row))
                row = []
                length = 0
            row.append(text)
            length += len(text)
        self.built.row(BETWEEN_CELLS.join(row))

    def _attributes(self, element: Element, before: str = "") -> list[str]:
        fields: list[str] = []
        for qualified, value in element.attrib.items():
            name = qualified.rpartition("}")[2]
            if value.strip() and name != "schemaLocation":
                fields.append(f"{before}{name}: {self._shown(value)}")
        return fields

    def _shown(self, text: str) -> str:
        if is_base64(text):
            self._base64 += 1
            return _BASE64
        return " ".join(without_html(text).split())

    def _begin(self, path: str) -> None:
        self.built.place(path[-_LONGEST_PATH:])


def _walk(element: Element) -> list[tuple[str, Element]]:
    from lxml import etree

    return list(etree.iterwalk(element, ("start", "end", "comment", "pi")))


def _children(element: Element, path: str) -> list[tuple[Element, str]]:
    """The children with their paths, in which those of one name have numbers."""
    totals: dict[str, int] = {}
    for child in element:
        name = local_name(child)
        totals[name] = totals.get(name, 0) + 1
    numbers: dict[str, int] = {}
    children: list[tuple[Element, str]] = []
    for child in element:
        name = local_name(child)
        numbers[name] = numbers.get(name, 0) + 1
        number = f"[{numbers[name]}]" if totals[name] > 1 else ""
        children.append((child, f"{path}/{name}{number}"))
    return children


def _is_prose(text: str) -> bool:
    """Whether a text reads like a sentence rather than like a value."""
    return text.endswith((".", "!", "?", "…")) or text.count(" ") >= _FEWEST_SPACES


def _is_mixed(element: Element) -> bool:
    """Whether text and elements are side by side in an element."""
    if not len(element):
        return False
    if element.text and element.text.strip():
        return True
    return any(child.tail and child.tail.strip() for child in element)


def _is_section(element: Element) -> bool:
    """Whether an element has a title above paragraphs or sections."""
    names = {local_name(child) for child in element}
    return not names.isdisjoint(_TITLES) and not names.isdisjoint(
        _PARAGRAPHS | _SECTIONS
    )


def _is_title(element: Element) -> bool:
    return local_name(element) in _TITLES and bool("".join(element.itertext()).strip())


def _is_record(element: Element) -> bool:
    """Whether an element has only text, or only children that have only text."""
    if any(len(child) for child in element):
        return False
    names = {local_name(child) for child in element}
    if len(element) > 1 and len(names) == 1 and local_name(element) not in _ROWS:
        return False  # a list
    length = sum(len(child.text or "") for child in element)
    return length <= LONGEST_UNIT or len(names) == len(element)
