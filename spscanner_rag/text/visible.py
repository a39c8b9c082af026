"""Shows every character of a text: what cannot be seen as a Python escape, markup as plain text.

Results show themselves with these functions in a notebook; `views.escaping` has those of all other outputs.
"""

import html
import re

# What a terminal or a page would act on instead of showing: control characters other than tab and line
# feed, bidirectional characters, line separators, lone surrogates; and what shows as nothing: format characters,
# fillers, soft hyphens, tags, ideographic variation selectors. The joiners and selectors that emoji need stay.
_UNSHOWABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    r"""Replace invisible characters by Python escapes: an escape character becomes the four characters ``\x1b``.

    Line feeds and tabs stay, and CR LF becomes a line feed.
    """
    return _UNSHOWABLE.sub(lambda match: escape_of(match.group()), text.replace("\r\n", "\n"))


def escaped(text: str) -> str:
    """Text as HTML, with invisible characters as Python escapes."""
    markup = html.escape(text.replace("\r\n", "\n"))
    return _UNSHOWABLE.sub(lambda match: f"<code>{escape_of(match.group())}</code>", markup)


def one_line(text: str) -> str:
    """The `visible` text on one line, each run of white space as one space."""
    return " ".join(visible(text).split())


def escape_of(character: str) -> str:
    r"""The Python escape of a character, such as ``\x1b`` or ``\u202e``."""
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
