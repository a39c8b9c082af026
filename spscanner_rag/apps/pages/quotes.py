"""Sentences as they are quoted in lists, where the lines of a Markdown table are noise."""

import re

_RULE = re.compile(r"\|?[\s:|-]*-[\s:|-]*\|?")  # between the head of a table and its body


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
