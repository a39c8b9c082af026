"""The lists of a Word document, and the markers of their items."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from spscanner_rag.files.readers.docx_styles import (
    LAST_LEVEL,
    MOST_PARENTS,
    Styles,
    children_with,
)
from spscanner_rag.files.readers.docx_xml import NAMES, is_on, value
from spscanner_rag.files.readers.notation import numeral, whole_number
from spscanner_rag.files.readers.zip_parts import Element

_MOST_NUMBER = 2**31
_LONGEST_LABEL = 60  # characters
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
    for number, level in children_with(element, path, "ilvl"):
        settings = _Level(
            whole_number(value(level, "w:start"), _MOST_NUMBER, 1),
            value(level, "w:numFmt") or "decimal",
            only_digits=is_on(level, "w:isLgl"),
            style=value(level, "w:pStyle"),
        )
        text = level.find("w:lvlText", NAMES)
        if text is not None:
            settings.text = value(text)[:_LONGEST_LABEL]
        after = level.find("w:lvlRestart", NAMES)
        if after is not None:
            settings.restarts_after = whole_number(value(after), LAST_LEVEL)
        levels[whole_number(number, LAST_LEVEL)] = settings
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
        definitions: dict[str, tuple[dict[int, _Level], str, dict[int, int]]] = {}
        path = "w:abstractNum"
        for name, definition in children_with(root, path, "abstractNumId"):
            levels = _levels(definition, "w:lvl")
            definitions[name] = (levels, value(definition, "w:numStyleLink"), {})
        lists = dict(children_with(root, "w:num", "numId"))
        self._lists: dict[str, _List] = {}
        for number, list_element in lists.items():
            of = list_element
            for _ in range(MOST_PARENTS):
                levels, style, counted = definitions.get(
                    value(of, "w:abstractNumId"), ({}, "", {})
                )
                if not style:  # otherwise a style's list has the definition
                    break
                of = lists.get(styles.of(style).number)
            starts = {}
            overrides = "w:lvlOverride[w:startOverride]"
            for level, override in children_with(list_element, overrides, "ilvl"):
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
        _count(counted, starts, level, at.start)
        for deeper in range(level + 1, LAST_LEVEL + 1):
            after = None
            if deeper in levels:
                after = levels[deeper].restarts_after
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
            form = _FORMS.get(other.format, "1")
            if at.only_digits:
                form = "1"
            if not form:
                return ""
            return numeral(counted.get(of, other.start), form, repeated=True)

        text = _PLACE.sub(shown, text)[:_LONGEST_LABEL].strip()
        return f"{text} " if text else ""


def _count(
    counted: dict[int, int], starts: dict[int, int], level: int, start: int
) -> None:
    """Count an item of a level, whose first has the number ``start``."""
    if level in starts:
        counted[level] = starts.pop(level)
    elif level in counted:
        counted[level] += 1
    else:
        counted[level] = start
