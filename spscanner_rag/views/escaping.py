"""Escapes text for display: control and bidirectional characters as Python escapes, markup as plain text."""

import html
import re

# What a terminal or a page would act on instead of showing: control characters other than tab and line
# feed, bidirectional and other invisible format characters, line separators, tags, lone surrogates.
_UNSHOWABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    r"""Replace invisible characters by Python escapes: an escape character becomes the four characters ``\x1b``.

    Line feeds and tabs stay, and CR LF becomes a line feed.
    """
    return _UNSHOWABLE.sub(lambda match: _escape_of(match.group()), text.replace("\r\n", "\n"))


def escaped(text: str) -> str:
    """Text as HTML, with invisible characters as Python escapes."""
    markup = html.escape(text.replace("\r\n", "\n"))
    return _UNSHOWABLE.sub(lambda match: f"<code>{_escape_of(match.group())}</code>", markup)


def one_line(text: str) -> str:
    """The `visible` text on one line, each run of white space as one space."""
    return " ".join(visible(text).split())


def escaped_line(text: str) -> str:
    """Text as HTML on one line, also for an attribute."""
    return html.escape(one_line(text))


def encodable(text: str, encoding: str) -> str:
    """Replace the characters that ``encoding`` cannot represent by Python escapes."""
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _escape_of(character: str) -> str:
    r"""The Python escape of a character, such as ``\x1b`` or ``\u202e``."""
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
