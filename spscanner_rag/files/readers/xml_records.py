"""Reads XML: paragraphs of documents, and records of data with their path.

An element whose children have only text is a record, as ``<book><title>...`` is. What
has text and elements side by side is a paragraph. Documents for readers are read by
`xml_prose`. Entities and other files are never loaded.
"""

import re

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.base64_values import is_base64
from spscanner_rag.files.readers.html_values import without_html
from spscanner_rag.files.readers.json_records import LONGEST_FIELD
from spscanner_rag.files.readers.text_builder import BETWEEN_CELLS, TextBuilder
from spscanner_rag.files.readers.xml_inline import InlineText
from spscanner_rag.files.readers.xml_prose import XmlProse, is_document
from spscanner_rag.files.readers.xml_shapes import (
    LONGEST_PATH,
    is_mixed,
    is_sentence,
    numbered_children,
)
from spscanner_rag.files.readers.zip_parts import Element, local_name, xml_root
from spscanner_rag.system.install_hints import import_extra
from spscanner_rag.text.block_segmentation import LONGEST_UNIT

_BASE64 = "(base64)"
_BEGINNING = b"<?xml"
_DOCTYPE = re.compile(rb"<!DOCTYPE\s+(?!html)[A-Za-z]", re.IGNORECASE)
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
    document = XmlProse() if is_document(root) else XmlRecords()
    document.add(root)
    comments = data.count(b"<!--")
    if comments:
        document.built.note(f"comments are left out ({comments:,})")
    return document.built.converted()


class XmlRecords:
    """Builds the text of data, whose tree is walked without recursion."""

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
            if is_mixed(element):
                self._add_paragraph(element, path)
            elif _is_record(element) and not is_section:
                self._add_record(element, path)
            else:
                self._add_attributes(element, path)
                for child, child_path in reversed(numbered_children(element, path)):
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
        line = InlineText(self._shown_within)
        line.add(element, is_line=True)
        self._begin(path)
        self.built.paragraph(line.line)
        for note in line.notes:
            self.built.paragraph(note)

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
            is_alone = leaf is element and (is_sentence(text) or name in _PARAGRAPHS)
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
        self.built.place(path[-LONGEST_PATH:])


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
