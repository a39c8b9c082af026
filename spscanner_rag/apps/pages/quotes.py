"""The text of a document on a page: its line breaks, and the rows of its tables."""

import re

import numpy as np
from markupsafe import Markup

from spscanner_rag.text.escaping import escaped

_BEGINS = re.compile(r"\s|[-*+•\u2013\u2014#|>]|\(?(?:\d{1,3}|[A-Za-z])[.)]\s")
"""The beginning of a paragraph or of an item of a list."""

_RULE = re.compile(r"\|?[\s:|-]*-[\s:|-]*\|?")  # the line between the head of a Markdown table and its body


class Breaks:
    """Tells line breaks that only wrap a paragraph, at 60 to 90 characters, from those that end one."""

    def __init__(self, text: str) -> None:
        self.text = text
        lengths = [len(line) for line in text[:200_000].split("\n") if line.strip()]
        usual = float(np.percentile(lengths, 90)) if len(lengths) >= 5 else 0.0
        self.shortest = int(0.7 * usual) if 45 <= usual <= 100 else None

    def is_soft(self, place: int) -> bool:
        """True if the line feed at an offset wraps a paragraph."""
        if self.shortest is None or place + 1 >= len(self.text) or _BEGINS.match(self.text, place + 1):
            return False
        line = self.text.rfind("\n", max(0, place - 200), place) + 1
        return place - line >= self.shortest and (line > 0 or place < 200)

    def html(self, start: int, end: int) -> Markup:
        """A part of the text, escaped, with the breaks that wrap a paragraph inside ``<i>``."""
        text = self.text
        if end > start and text[end - 1] == "\r" and text[end : end + 1] == "\n":
            end -= 1  # the part ends inside CR LF, which is shown as one line feed
        parts = []
        while (place := text.find("\n", start, end)) >= 0:
            stop = place - 1 if place > start and text[place - 1] == "\r" else place
            parts.append(escaped(text[start:stop]))
            parts.append("<i>\n</i>" if self.is_soft(place) else "\n")
            start = place + 1
        return Markup("".join([*parts, escaped(text[start:end])]))


def readable(text: str) -> str:
    """Rows of Markdown tables without their lines, cells apart by "·"; other text as it is."""
    rows = text.strip().splitlines()
    if not rows or not all(row.strip().startswith("|") and row.strip().endswith("|") for row in rows):
        return text
    shown = "\n".join(
        " · ".join(filter(None, (cell.strip() for cell in row.strip().strip("|").split("|"))))
        for row in rows
        if not _RULE.fullmatch(row.strip())
    )
    return shown or text
