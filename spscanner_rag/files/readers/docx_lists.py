"""The numbers that Word shows before paragraphs, and the styles that give them: styles.xml and numbering.xml."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from spscanner_rag.files.readers.docx_parts import PartReader, value_of, word_attribute
from spscanner_rag.files.readers.numerals import cardinal, numeral, ordinal, ordinal_word, whole_number

LAST_LEVEL = 8  # Word has nine
_MOST_PARENTS = 20  # styles that are based on each other; a circle ends here
_MOST_NUMBER = 2**31
_LONGEST_LABEL = 60  # characters
_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)
_FORMS = {"lowerLetter": "a", "upperLetter": "A", "lowerRoman": "i", "upperRoman": "I", "decimalZero": "01"}
_PLACE = re.compile(r"%([1-9])")


def is_on(value: str) -> bool:
    """True for a property that is switched on; without a value it is."""
    return value not in ("0", "false", "off", "none")


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


class Styles(PartReader):
    """The styles of a document, as its part says them."""

    def __init__(self) -> None:
        super().__init__()
        self._all: dict[str, Style] = {}
        self._style = Style()
        self._of_first_row = False

    def begin(self, name: str, attributes: Mapping[str, str]) -> None:
        """Note a style or a property of one."""
        style, value = self._style, value_of(attributes)
        match name:
            case "style":
                self._style = self._all[word_attribute(attributes, "styleId")] = Style()
                self._of_first_row = False
            case "tblStylePr":
                self._of_first_row = word_attribute(attributes, "type") == "firstRow"
            case "b" | "shd" if self._of_first_row:
                style.header_row = style.header_row or is_on(value)
            case "name" | "outlineLvl":
                style.outline = style.outline or heading_level(name, value)
            case "numId":
                style.number = value
            case "ilvl":
                style.level = whole_number(value, LAST_LEVEL)
            case "basedOn":
                style.parent = value
            case "b":
                style.bold = is_on(value)
            case "vanish":
                style.hidden = is_on(value)

    def of(self, name: str) -> Style:
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


def heading_level(name: str, value: str) -> int:
    """The level of a heading, from 1, that a style's name or an outline level says; 0 for none."""
    if name == "outlineLvl":
        level = whole_number(value, LAST_LEVEL + 1, LAST_LEVEL + 1)
        return 0 if level > LAST_LEVEL else level + 1
    match = _HEADING.fullmatch(value)
    return int(match[1]) if match else int(value.lower() == "title")


@dataclass(slots=True)
class _Level:
    start: int = 1
    format: str = "decimal"
    text: str | None = None  # such as "%1.%2)"
    only_digits: bool = False  # the numbers of other levels too
    restarts_after: int | None = None  # the level, from 1, whose items let it start again; 0 for none
    style: str = ""  # whose paragraphs are on this level


@dataclass(slots=True)
class _Definition:
    levels: dict[int, _Level] = field(default_factory=dict)
    style: str = ""  # that has the definition instead
    counted: dict[int, int] = field(default_factory=dict)  # level -> number of its last item


@dataclass(slots=True)
class _List:
    definition: str = ""
    starts: dict[int, int] = field(default_factory=dict)  # level -> number of the first item in this list
    levels: dict[int, _Level] = field(default_factory=dict)


class Lists(PartReader):
    """The lists of a document, as its part says them, and the number of the last item of each."""

    def __init__(self, styles: Styles) -> None:
        super().__init__()
        self._styles = styles
        self._definitions: dict[str, _Definition] = {}
        self._lists: dict[str, _List] = {}
        self._owner: _Definition | _List = _Definition()
        self._number = 0  # of the level
        self._level = _Level()

    def begin(self, name: str, attributes: Mapping[str, str]) -> None:
        """Note a list, a level or a property of one."""
        owner, value = self._owner, value_of(attributes)
        match name:
            case "abstractNum":
                self._owner = self._definitions[word_attribute(attributes, "abstractNumId")] = _Definition()
            case "num":
                self._owner = self._lists[word_attribute(attributes, "numId")] = _List()
            case "abstractNumId" if isinstance(owner, _List):
                owner.definition = value
            case "numStyleLink" if isinstance(owner, _Definition):
                owner.style = value
            case "lvl" | "lvlOverride":
                self._number = whole_number(word_attribute(attributes, "ilvl"), LAST_LEVEL)
                if name == "lvl":
                    self._level = owner.levels[self._number] = _Level()
            case "startOverride" if isinstance(owner, _List):
                owner.starts[self._number] = whole_number(value, _MOST_NUMBER, 1)
            case _:
                self._note(name, value)

    def _note(self, name: str, value: str) -> None:
        level = self._level
        match name:
            case "start":
                level.start = whole_number(value, _MOST_NUMBER, 1)
            case "numFmt":
                level.format = value
            case "lvlText":
                level.text = value[:_LONGEST_LABEL]
            case "isLgl":
                level.only_digits = is_on(value)
            case "lvlRestart":
                level.restarts_after = whole_number(value, LAST_LEVEL)
            case "pStyle":
                level.style = value

    def level_of(self, number: str, style: str, default: int) -> int:
        """The level in a list on which the paragraphs of a style are."""
        definition = self._definition(number)
        linked = (each for each, level in definition.levels.items() if style and level.style == style)
        return next(linked, default)

    def label(self, number: str, level: int) -> str:
        """Count an item of a list, and return what Word shows before it: a dash, a number, or nothing."""
        if number not in self._lists:
            return "- "
        own, definition = self._lists[number], self._definition(number)
        levels, counted = {**definition.levels, **own.levels}, definition.counted
        at = levels.get(level, _Level())
        if level in own.starts:
            counted[level] = own.starts.pop(level)
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

    def _definition(self, number: str) -> _Definition:
        """The definition of a list; for one that a style has, that of the style's list."""
        for _ in range(_MOST_PARENTS):
            of = self._lists.get(number, _List()).definition
            found = self._definitions.get(of, _Definition())
            if not found.style:
                break
            number = self._styles.of(found.style).number
        return found


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
