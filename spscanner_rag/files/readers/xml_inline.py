"""Text of XML elements on one line: notes apart, formulas written, spaces kept."""

import re
from collections.abc import Callable
from typing import Final

from spscanner_rag.files.readers.notation import formula_text
from spscanner_rag.files.readers.zip_parts import Element, local_name

FORMATTING: Final = frozenset(
    {
        *("b", "bold", "em", "emph", "emphasis", "hi", "i", "italic", "monospace"),
        *("overline", "sc", "span", "strike", "strong", "sub", "subscript", "sup"),
        *("superscript", "u", "underline", "styled-content", "named-content"),
        *("c", "g", "seg", "r", "t", "w", "tt", "code", "literal", "del", "ins"),
    }
)
"""Elements that change how letters look, and may be within a word."""

NOTES: Final = frozenset({"note", "footnote", "endnote", "fn"})
"""Elements that are shown after the line in which their mark stands."""

_APART = {
    *("blockquote", "caption", "dd", "def", "dt", "entry", "item", "l", "label", "lg"),
    *("li", "list", "list-item", "listitem", "p", "para", "row", "simpara", "speaker"),
    *("table", "td", "term", "th", "title", "tr", "br", "break", "lb", "sbr"),
}
"""Elements that stand apart from the words around them."""

_FORMULAS = {"math", "tex-math"}
ALTERNATIVES: Final = "alternatives"
"""An element with several forms of one thing, such as a formula and its picture."""

_PREFERRED = ("math", "table", "tex-math", "textual-form")
_TEX_BODY = re.compile(r"\\begin\{document\}(.*?)(?:\\end\{document\}|\Z)", re.DOTALL)

Shown = Callable[[Element], list[str]]
"""What is shown of an element within a line beside its text."""


def nothing(_element: Element) -> list[str]:
    """Show nothing of an element beside its text: the default `Shown`."""
    return []


class InlineText:
    """The text of elements that stand on one line.

    Parameters
    ----------
    shown : callable, optional
        See `Shown`.
    """

    def __init__(self, shown: Shown = nothing) -> None:
        self.notes: list[str] = []  # of the line, each with its mark
        self._shown = shown
        self._parts: list[str] = []
        self._others: set[Element] = set()  # forms of a thing that are not shown

    def add_text(self, text: str | None) -> None:
        """Add text between elements."""
        self._parts.append(text or "")

    def add(self, element: Element, *, is_line: bool = False) -> None:
        """Add an element without its tail, in which marks stand for notes.

        ``is_line`` says that the element is the line: it is no note in it, and nothing
        of it is shown beside its text.
        """
        if not isinstance(element.tag, str):  # an entity, which is not expanded
            self.add_text(element.text)
            return
        skipped: Element | None = None  # what the walk is in
        for event, part in _walk(element):
            if event == "start":
                is_line_itself = is_line and part is element
                if skipped is None and not self._begins(part, is_line_itself):
                    skipped = part
                continue
            if skipped is part:
                skipped = None
            if skipped is None and part is not element:
                if local_name(part) in _APART:
                    self.add_text(" ")
                self.add_text(part.tail)

    def _begins(self, part: Element, is_line: bool) -> bool:
        """Add what stands before the children of a part; False if these are done."""
        if not isinstance(part.tag, str):  # an entity, which is not expanded
            self.add_text(part.text)
            return True
        name = local_name(part)
        if part in self._others:
            return False
        if name in _FORMULAS:
            self.add_text(formula_of(part))
            return False
        if not is_line:
            if name in NOTES:
                self._add_note(part)
                return False
            if name in _APART or _touches_another(part):
                self.add_text(" ")
        if name == ALTERNATIVES and len(part):
            self._others |= {*part} - {shown_alternative(part)}
        self.add_text(part.text)
        if not is_line:
            self._parts += self._shown(part)
        return True

    def _add_note(self, note: Element) -> None:
        mark = f"[{len(self.notes) + 1}]"
        self.add_text(mark)
        text = InlineText()
        text.add(note, is_line=True)
        self.notes.append(f"{mark} {text.line}")
        self.notes += text.notes

    @property
    def line(self) -> str:
        """The text, with single spaces."""
        return " ".join("".join(self._parts).split())


def line_of(element: Element) -> str:
    """Return the text of an element on one line, with its notes after it."""
    text = InlineText()
    text.add(element, is_line=True)
    return " ".join([text.line, *text.notes])


def formula_of(element: Element) -> str:
    """Return a formula in MathML as text, or one in TeX as it is."""
    if local_name(element) != "tex-math":
        return formula_text(element)
    source = "".join(element.itertext())
    body = _TEX_BODY.search(source)
    return (body[1] if body else source).strip().strip("$").strip()


def shown_alternative(alternatives: Element) -> Element:
    """Return the one of several forms of a thing that is read best.

    There is at least one.
    """
    first_by_name: dict[str, Element] = {}
    for form in alternatives:
        first_by_name.setdefault(local_name(form), form)
    for name in _PREFERRED:
        if name in first_by_name:
            return first_by_name[name]
    return alternatives[0]


def _touches_another(part: Element) -> bool:
    """Whether a part stands right after another, and neither is within a word."""
    before = part.getprevious()
    if before is None or before.tail or local_name(part) in FORMATTING:
        return False
    return isinstance(before.tag, str) and local_name(before) not in FORMATTING


def _walk(element: Element) -> list[tuple[str, Element]]:
    from lxml import etree

    return list(etree.iterwalk(element, ("start", "end", "comment", "pi")))
