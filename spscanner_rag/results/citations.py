"""Passages with marks of their places, which no text can forge."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from spscanner_rag.text.framing import inert_passage

if TYPE_CHECKING:
    from spscanner_rag.results.passages import Passage


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
