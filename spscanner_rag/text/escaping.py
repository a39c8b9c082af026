"""Escape text for every kind of output.

Invisible characters become Python escapes, and markup and formulas plain text.
Everything that writes text of a document, or a name from a file or a command line, uses
one of these: `one_line` or `unbroken` for a terminal, `escaped` for HTML,
`markdown_text`, `markdown_code`, `csv_cell`. What a language model gets is framed by
`spscanner_rag.text.framing`. JSON is written in ASCII by
``json.dumps``. A test calls every writer with hostile names.
"""

import html
import re
from collections.abc import Callable
from contextlib import suppress

# Characters that a terminal or a page would act on instead of showing: control
# characters other than tab and line feed, bidirectional characters, line separators,
# lone surrogates; and invisible ones: format characters, fillers, soft hyphens, tags,
# ideographic variation selectors. The joiners and selectors that emoji need stay.
_UNSHOWABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufeff"
    "\uffa0\ufff0-\ufffb\ud800-\udfff\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)

_LINE_PARTS = re.compile("[\t\n\r]")
_MARKDOWN = re.compile(r"[\\`*\[\]|~]")
# Spreadsheets compute a cell that begins with one of these.
_FORMULA = tuple("=+-@＝＋－＠")  # noqa: RUF001


def first_line(error: BaseException) -> str:
    """The first line of an error's message, at most 200 characters.

    It is the error's type if it has no message.
    """
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__[:200]


def visible(text: str) -> str:
    r"""Replace invisible characters but tabs by Python escapes such as ``\x1b``.

    CR LF becomes a line feed.

    Examples
    --------
    >>> print(visible("a \x1b[31mred\u200b word"))
    a \x1b[31mred\u200b word
    """
    return with_invisible(text.replace("\r\n", "\n"), escape_of)


def with_invisible(text: str, escape: Callable[[str], str]) -> str:
    """Replace each invisible character but tabs and line feeds by its escape."""
    return _UNSHOWABLE.sub(lambda match: escape(match[0]), text)


def escaped(text: str) -> str:
    """Text as HTML, with invisible characters as Python escapes."""
    markup = html.escape(text.replace("\r\n", "\n"))
    return _UNSHOWABLE.sub(lambda match: f"<code>{escape_of(match[0])}</code>", markup)


def one_line(text: str) -> str:
    """The `visible` text on one line, each run of white space as one space."""
    return " ".join(visible(text).split())


def escape_of(character: str) -> str:
    r"""The Python escape of a character, such as ``\x1b`` or ``\u202e``."""
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\U{code:08x}"


def unbroken(text: str) -> str:
    """The `visible` text on one line, with tabs and line breaks as escapes too.

    Spaces stay as they are.
    """
    return _LINE_PARTS.sub(lambda match: escape_of(match[0]), visible(text))


def encodable(text: str, encoding: str) -> str:
    """Replace the characters that ``encoding`` cannot represent by Python escapes."""
    return text.encode(encoding, "backslashreplace").decode(encoding)


def markdown_text(text: str) -> str:
    r"""Text on one line of Markdown, also in a cell of a table.

    No markup, link or HTML in it has an effect.

    Examples
    --------
    >>> print(markdown_text("*bold* | <b>HTML</b>"))
    \*bold\* \| &lt;b&gt;HTML&lt;/b&gt;
    """
    shown = html.escape(one_line(text), quote=False)
    return _MARKDOWN.sub(lambda match: f"\\{match[0]}", shown)


def markdown_code(text: str) -> str:
    """Text as code on one line of Markdown, also in a cell of a table.

    It may hold any back-ticks.
    """
    shown = one_line(text).replace("|", "\\|")
    longest = max(map(len, re.findall("`+", shown)), default=0)
    fence = "`" * (longest + 1)
    space = " " if longest or not shown else ""
    return f"{fence}{space}{shown}{space}{fence}"


def csv_cell(value: object) -> object:
    """A value as a cell of a CSV file.

    Text that a spreadsheet would compute gets an apostrophe; numbers stay.

    Examples
    --------
    >>> csv_cell("=1+1"), csv_cell("-3.5"), csv_cell("plain"), csv_cell(7)
    ("'=1+1", '-3.5', 'plain', 7)
    """
    if not isinstance(value, str):
        return value
    shown = one_line(value)
    with suppress(ValueError):
        float(shown)
        return shown
    return f"'{shown}" if shown.startswith(_FORMULA) else shown
