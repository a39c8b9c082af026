"""Escapes text for every kind of output: what cannot be seen as Python escapes, markup and formulas as plain text.

Everything that writes text of a document, or a name from a file or a command line, uses one of these: `one_line`
or `unbroken` for a terminal, `escaped` or `escaped_line` for HTML, `markdown_text` or `markdown_code`, `csv_cell`.
JSON is written in ASCII by ``json.dumps``. A test calls every writer with hostile names.
"""

import html
import re

from spscanner_rag.text.visible import escape_of, escaped, one_line, visible

__all__ = [
    "csv_cell",
    "encodable",
    "escaped",
    "escaped_line",
    "markdown_code",
    "markdown_text",
    "one_line",
    "unbroken",
    "visible",
]

_LINE_PARTS = re.compile("[\t\n\r]")
_MARKDOWN = re.compile(r"[\\`*\[\]|~]")
_FORMULA = tuple("=+-@＝＋－＠")  # noqa: RUF001
"""Spreadsheets compute a cell that begins with one of these."""


def unbroken(text: str) -> str:
    """The `visible` text on one line, with tabs and line breaks as escapes too, and spaces as they are."""
    return _LINE_PARTS.sub(lambda match: escape_of(match.group()), visible(text))


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
    """A value as a cell of a CSV file: a text that a spreadsheet would compute gets an apostrophe before it.

    Numbers stay numbers, also those given as text, such as "-3.2".
    """
    if not isinstance(value, str):
        return value
    shown = one_line(value)
    return f"'{shown}" if shown.startswith(_FORMULA) and not _is_number(shown) else shown


def escaped_line(text: str) -> str:
    """Text as HTML on one line, also for an attribute."""
    return html.escape(one_line(text))


def encodable(text: str, encoding: str) -> str:
    """Replace the characters that ``encoding`` cannot represent by Python escapes."""
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
