"""The numbers that Word shows before paragraphs, and the styles that give them: styles.xml and numbering.xml."""

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from spscanner_rag.files.readers.docx_parts import NAMES, Element, attribute, is_on, value
from spscanner_rag.files.readers.numerals import cardinal, numeral, ordinal, ordinal_word, whole_number

LAST_LEVEL = 8  # Word has nine
_MOST_PARENTS = 20  # styles that are based on each other; a circle ends here
_MOST_KEPT = 5_000  # styles
_MOST_NUMBER = 2**31
_LONGEST_LABEL = 60  # characters
_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)
_FORMS = {"lowerLetter": "a", "upperLetter": "A", "lowerRoman": "i", "upperRoman": "I", "decimalZero": "01"}
_PLACE = re.compile(r"%([1-9])")


@dataclass(slots=True)
class Style:
    """What a style says of its paragraphs or runs; empty and 0 where it says nothing."""

    outline: int = 0  # level of a heading, from 1
    number: str = ""  # of a list
    level: int = 0  # in that list
    parent: str = ""
    bold: bool = False
    hidden: bool = False
    header_row: bool = False  # of a table: its first row looks different


def _style(element: Element) -> Style:
    name, first_row = value(element, "w:name"), element.find("w:tblStylePr[@w:type='firstRow']", NAMES)
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
    """The elements at a path, with one of their attributes."""
    return [] if element is None else [(attribute(one, key), one) for one in element.iterfind(path, NAMES)]


class Styles:
    """The styles of a document, as its part says them."""

    def __init__(self, root: Element) -> None:
        self._all = {name: _style(one) for name, one in _children(root, "w:style", "styleId") if name}
        self.of = lru_cache(_MOST_KEPT)(self._of)

    def _of(self, name: str) -> Style:
        """A style with what it takes from those that it is based on."""
        found = replace(self._all.get(name, Style()))
        for _ in range(_MOST_PARENTS):
            if not (parent := self._all.get(found.parent)):
                break
            if not found.number:
                found.number, found.level = parent.number, parent.level
            found.outline = found.outline or parent.outline
            found.bold, found.hidden = found.bold or parent.bold, found.hidden or parent.hidden
            found.header_row = found.header_row or parent.header_row
            found.parent = parent.parent
        return found


def outline_level(element: Element) -> int:
    """The level of a heading, from 1, that a property says; 0 for none."""
    return (whole_number(value(element), LAST_LEVEL + 1, LAST_LEVEL + 1) + 1) % (LAST_LEVEL + 2)


@dataclass(slots=True)
class _Level:
    start: int = 1
    format: str = "decimal"
    text: str | None = None  # such as "%1.%2)"
    only_digits: bool = False  # the numbers of other levels too
    restarts_after: int | None = None  # the level, from 1, whose items let it start again; 0 for none
    style: str = ""  # whose paragraphs are on this level


class _List(NamedTuple):
    levels: dict[int, _Level]
    starts: dict[int, int]  # level -> number of the first item in this list
    counted: dict[int, int]  # level -> number of the last item, of all lists of one definition


def _levels(element: Element, path: str) -> dict[int, _Level]:
    found = {}
    for number, one in _children(element, path, "ilvl"):
        text = one.find("w:lvlText", NAMES)
        after = one.find("w:lvlRestart", NAMES)
        found[whole_number(number, LAST_LEVEL)] = _Level(
            whole_number(value(one, "w:start"), _MOST_NUMBER, 1),
            value(one, "w:numFmt") or "decimal",
            None if text is None else attribute(text, "val")[:_LONGEST_LABEL],
            is_on(one, "w:isLgl"),
            None if after is None else whole_number(attribute(after, "val"), LAST_LEVEL),
            value(one, "w:pStyle"),
        )
    return found


def _starts(element: Element) -> dict[int, int]:
    return {
        whole_number(level, LAST_LEVEL): whole_number(value(one, "w:startOverride"), _MOST_NUMBER, 1)
        for level, one in _children(element, "w:lvlOverride[w:startOverride]", "ilvl")
    }


class Lists:
    """The lists of a document, as its part says them, and the number of the last item of each."""

    def __init__(self, root: Element, styles: Styles) -> None:
        definitions: dict[str, tuple[dict[int, _Level], str, dict[int, int]]] = {
            name: (_levels(one, "w:lvl"), value(one, "w:numStyleLink"), {})
            for name, one in _children(root, "w:abstractNum", "abstractNumId")
        }
        lists = dict(_children(root, "w:num", "numId"))
        self._lists: dict[str, _List] = {}
        for number, one in lists.items():
            of = one
            for _ in range(_MOST_PARENTS):
                levels, style, counted = definitions.get(value(of, "w:abstractNumId"), ({}, "", {}))
                if not style:  # else the list of a style has the definition
                    break
                of = lists.get(styles.of(style).number)
            own = _levels(one, "w:lvlOverride/w:lvl")
            self._lists[number] = _List({**levels, **own}, _starts(one), counted)

    def level_of(self, number: str, style: str, default: int) -> int:
        """The level in a list on which the paragraphs of a style are."""
        levels = self._lists[number].levels if number in self._lists else {}
        return next((each for each, level in levels.items() if style and level.style == style), default)

    def label(self, number: str, level: int) -> str:
        """Count an item of a list, and return what Word shows before it: a dash, a number, or nothing."""
        if number not in self._lists:
            return "- "
        levels, starts, counted = self._lists[number]
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
        default = ".".join(f"%{each + 1}" for each in range(level + 1)) + "."
        text = default if at.text is None else at.text

        def shown(place: re.Match[str]) -> str:
            of = int(place[1]) - 1
            other = levels.get(of, _Level())
            return _written(counted.get(of, other.start), "decimal" if at.only_digits else other.format)

        text = _PLACE.sub(shown, text)[:_LONGEST_LABEL].strip()
        return f"{text} " if text else ""


def _written(number: int, form: str) -> str:
    match form:
        case "none":
            return ""
        case "cardinalText":
            return cardinal(number).capitalize()
        case "ordinalText":
            return ordinal_word(number).capitalize()
        case "ordinal":
            return ordinal(number)
        case "numberInDash":
            return f"- {number} -"
        case _:
            return numeral(number, _FORMS.get(form, "1"), repeated=True)
