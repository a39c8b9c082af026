"""A file's name with a place in it, on a line that no name can forge."""

import re
from collections.abc import Iterable

from spscanner_rag.text.escaping import one_line

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
