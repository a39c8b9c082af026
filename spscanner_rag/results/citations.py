"""Places of passages for people and language models, which no text can forge."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from spscanner_rag.text.escaping import one_line
from spscanner_rag.text.framing import inert_passage

if TYPE_CHECKING:
    from spscanner_rag.results.passages import Passage

# a name with one of these could pose as a name and a place, or as several headings
_POSING = re.compile(r'[,"]| > |^\s*(page|characters)\s', re.IGNORECASE)


def place_of_names(source: str, place: str = "", headings: Iterable[str] = ()) -> str:
    """A file's name and a place in it, which is ours, or else the headings, on a line.

    A name that looks like more than a name is quoted.

    Examples
    --------
    >>> place_of_names("report.pdf", "page 12")
    'report.pdf, page 12'
    >>> place_of_names("guide.md", headings=["Setup", "Linux, page 9"])
    'guide.md, Setup > "Linux, page 9"'
    """
    if not place:
        place = " > ".join(map(_name, headings))
    parts = [_name(source), place]
    return one_line(", ".join(part for part in parts if part))


def _name(name: str) -> str:
    if not _POSING.search(name):
        return name
    inside = name.replace('"', "'")
    return f'"{inside}"'


def with_citations(passages: "Iterable[Passage]") -> str:
    """Passages with a mark after each, and the list of the places of the marks.

    What looks like a mark in a passage gets a backslash.
    """
    marks: dict[str, int] = {}
    lines: list[str] = []
    for passage in passages:
        mark = marks.setdefault(passage.cite(), len(marks) + 1)
        lines.append(f"{inert_passage(passage.text)} [{mark}]")
    lines.append("")
    for place, mark in marks.items():
        lines.append(f"[{mark}] {inert_passage(place)}")
    return "\n".join(lines)
