"""Escape text for every kind of output: invisible characters as Python escapes, markup and formulas as plain text.

Everything that writes text of a document, or a name from a file or a command line, uses
one of these: `one_line` or `unbroken` for a terminal, `escaped` for HTML,
`markdown_text`, `markdown_code`, `csv_cell`. JSON is written in ASCII by
``json.dumps``. A test calls every writer with hostile names.
"""

import html
import re
from contextlib import suppress

# Characters that a terminal or a page would act on instead of showing: control
# characters other than tab and line feed, bidirectional characters, line separators,
# lone surrogates; and invisible ones: format characters, fillers, soft hyphens, tags,
# ideographic variation selectors. The joiners and selectors that emoji need stay.
_UNSHOWABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)

_LINE_PARTS = re.compile("[\t\n\r]")
_MARKDOWN = re.compile(r"[\\`*\[\]|~]")
_FORMULA = tuple("=+-@＝＋－＠")  # noqa: RUF001
"""Spreadsheets compute a cell that begins with one of these."""


def first_line(error: BaseException) -> str:
    """The first line of an error's message, at most 200 characters, or its type if it has no message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def visible(text: str) -> str:
    r"""Replace invisible characters but tabs by Python escapes such as ``\x1b``.

    CR LF becomes a line feed.
    """
    return _UNSHOWABLE.sub(
        lambda match: escape_of(match.group()), text.replace("\r\n", "\n")
    )


def escaped(text: str) -> str:
    """Text as HTML, with invisible characters as Python escapes."""
    markup = html.escape(text.replace("\r\n", "\n"))
    return _UNSHOWABLE.sub(
        lambda match: f"<code>{escape_of(match.group())}</code>", markup
    )


def one_line(text: str) -> str:
    """The `visible` text on one line, each run of white space as one space."""
    return " ".join(visible(text).split())


def escape_of(character: str) -> str:
    r"""The Python escape of a character, such as ``\x1b`` or ``\u202e``."""
    code = ord(character)
    return (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )


def unbroken(text: str) -> str:
    """The `visible` text on one line, with tabs and line breaks as escapes too, and spaces as they are."""
    return _LINE_PARTS.sub(lambda match: escape_of(match.group()), visible(text))


def encodable(text: str, encoding: str) -> str:
    """Replace the characters that ``encoding`` cannot represent by Python escapes."""
    return text.encode(encoding, "backslashreplace").decode(encoding)


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
    with suppress(ValueError):
        float(shown)
        return shown
    return f"'{shown}" if shown.startswith(_FORMULA) else shown
