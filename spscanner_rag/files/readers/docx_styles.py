"""The styles of a Word document, with what they inherit from one another."""

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from spscanner_rag.files.readers.docx_xml import NAMES, attribute, is_on, value
from spscanner_rag.files.readers.notation import whole_number
from spscanner_rag.files.readers.zip_parts import Element

LAST_LEVEL = 8  # Word has nine levels, from 0
MOST_PARENTS = 20  # styles based on one another; a circular reference ends here
_MOST_KEPT = 5_000  # styles in the cache
_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)


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


def children_with(element: Element, path: str, key: str) -> list[tuple[str, Element]]:
    """The elements at a path, each with one of its attributes."""
    if element is None:
        return []
    return [(attribute(child, key), child) for child in element.iterfind(path, NAMES)]


class Styles:
    """The styles of a document, from its styles part."""

    def __init__(self, root: Element) -> None:
        self._all: dict[str, Style] = {}
        for name, style_element in children_with(root, "w:style", "styleId"):
            if name:
                self._all[name] = _style(style_element)
        self.of = lru_cache(_MOST_KEPT)(self._of)

    def _of(self, name: str) -> Style:
        """A style with what it inherits from the styles that it is based on."""
        style = replace(self._all.get(name, Style()))
        for _ in range(MOST_PARENTS):
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
    """The heading level, from 1, that a property sets, or 0 for none."""
    return (whole_number(value(element), LAST_LEVEL + 1, LAST_LEVEL + 1) + 1) % (
        LAST_LEVEL + 2
    )
