"""Values of tables and records that are HTML, as feeds and shops export them."""

import html
import re
from collections.abc import Iterator

from spscanner_rag.files.readers.markdown_markup import shown_for_tag
from spscanner_rag.text.blocks import Block
from spscanner_rag.text.visible_text import shown

# A value is HTML if it has an element that ends, or one that needs no end.
_IS_HTML = re.compile(
    r"</(?:a|abbr|b|big|blockquote|code|dd|del|div|dl|dt|em|figure|font|h[1-6]|i|ins|li"
    r"|mark|ol|p|pre|s|section|small|span|strong|sub|sup|table|t[dhr]|tbody|tt|u|ul)"
    r"\s*>"
    r"|<(?:br|hr)\s*/?>|<img\s[^<>]*>",
    re.IGNORECASE,
)
_MARKUP = re.compile(
    r"<!--[^<>]{0,1000}-->"
    r"|<(?P<closes>/?)(?P<name>[A-Za-z][A-Za-z0-9]{0,11})(?:\s[^<>]*|/)?>"
    r"|&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});"
)


def html_markup_of(text: str) -> Iterator[Block]:
    """The tags and entities of a text that has HTML, in order and disjoint.

    None of a text without. Each block's title is what is shown in its place.

    Examples
    --------
    >>> [block.title for block in html_markup_of("<b>Flour</b> &amp; oil")]
    ['', '', '&']
    >>> list(html_markup_of("a <b and List<Item> &amp; more"))
    []
    """
    if "<" not in text or _IS_HTML.search(text) is None:
        return
    for match in _MARKUP.finditer(text):
        title = _title(match)
        if title is not None:
            yield Block(*match.span(), "markup", title=title)


def without_html(text: str) -> str:
    """What a value shows.

    Examples
    --------
    >>> without_html("<p>The rent is <b>due</b>.</p><p>Pay&nbsp;it.</p>").split()
    ['The', 'rent', 'is', 'due.', 'Pay', 'it.']
    >>> without_html("4 < 5 &amp; 6")
    '4 < 5 &amp; 6'
    """
    markup = list(html_markup_of(text))
    return shown(text, 0, len(text), markup) if markup else text


def _title(match: re.Match[str]) -> str | None:
    """What is shown in place of a tag or an entity, or None for what is text."""
    if match["name"]:
        return shown_for_tag(match["name"], closes=bool(match["closes"]))
    if match[0].startswith("<"):
        return ""
    character = html.unescape(match[0])
    return None if character == match[0] else character
