"""Text in Markdown and in CSV: no markup, link, HTML or formula in it has an effect."""

import html
import re

from spscanner_rag.text.escaping import one_line

_MARKDOWN = re.compile(r"[\\`*\[\]|~]")
_FORMULA = tuple("=+-@＝＋－＠")  # noqa: RUF001
"""Spreadsheets compute a cell that begins with one of these."""


def markdown_text(text: str) -> str:
    """Text on one line of Markdown, also in a cell of a table: no markup, link or HTML in it has an effect."""
    shown = html.escape(one_line(text), quote=False)
    return _MARKDOWN.sub(lambda match: f"\\{match.group()}", shown)


def markdown_code(text: str) -> str:
    """Text as code on one line of Markdown, in a cell of a table, whatever back-ticks it holds."""
    shown = one_line(text).replace("|", "\\|")
    longest = max(map(len, re.findall("`+", shown)), default=0)
    fence, space = "`" * (longest + 1), " " if longest or not shown else ""
    return f"{fence}{space}{shown}{space}{fence}"


def csv_cell(value: object) -> object:
    """A value as a cell of a CSV file: text that a spreadsheet would compute gets an apostrophe; numbers stay."""
    if not isinstance(value, str):
        return value
    shown = one_line(value)
    return f"'{shown}" if shown.startswith(_FORMULA) and not _is_number(shown) else shown


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
