"""Finds what of a Markdown text is neither read nor shown: tags, pictures, escapes."""

import html
import re
from collections.abc import Iterator, Sequence

from spscanner_rag.text.blocks import Block

# Elements of HTML, by what a reader sees of their tags: nothing, a space between words,
# a bar between cells, or struck text. Other names in angle brackets, such as
# "List<Item>", are text.
_INLINE = (
    "a abbr acronym b bdi bdo big cite code data dfn em font i ins kbd label mark meter"
    " nobr output progress q rb rp rt rtc ruby samp small span strong sub sup time tt u"
    " var wbr"
)
_SPACE = (
    "address article aside audio base blockquote body br button canvas caption center"
    " col colgroup dd details dialog div dl dt embed fieldset figcaption figure footer"
    " form h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe img input legend li link"
    " main map menu meta nav object ol optgroup option p param picture pre section"
    " select source summary svg path table tbody textarea tfoot thead title tr track"
    " ul video"
)
_CELLS = "td th"
_CELL = " | "  # before each cell
_STRUCK = "s strike del"
_SHOWN_FOR_TAG = dict.fromkeys(_INLINE.split(), "")
_SHOWN_FOR_TAG |= dict.fromkeys(_SPACE.split(), " ")
_SHOWN_FOR_TAG |= dict.fromkeys(_STRUCK.split(), "~~")
_SHOWN_FOR_TAG |= dict.fromkeys(_CELLS.split(), _CELL)

_DATA = r"data:[\w.+-]{1,60}/[\w.+-]{1,60}[;,]"
_MARKUP = re.compile(
    r"(?P<code>(?<!`)(?P<ticks>`{1,9})(?!`).{1,200}?(?<!`)(?P=ticks)(?!`))"
    r"|(?P<opening><!--|<(?P<element>script|style)\b[^<>]*>)"
    r"|(?P<tag></?(?P<name>[A-Za-z][A-Za-z0-9]{0,11})(?:\s[^<>]*|/)?>)"
    r"|(?P<picture>!\[(?P<alt>[^\[\]\n]{0,500})\]"
    rf"\(\s*<?{_DATA}[^()\s]*(?:\s[^()\n]{{0,300}})?\))"
    rf"|(?P<linked>(?<=\])\(\s*<?{_DATA}[^()\s]*(?:\s[^()\n]{{0,300}})?\))"
    rf"|(?P<address>(?<!\w){_DATA}base64,[A-Za-z0-9+/=_%-]{{80,}})"
    r"|(?P<entity>&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});)"
    r"|(?P<escape>\\(?=[_*#<>&~|\"'.!+`-]|\n))",
    re.DOTALL,
)


def markup_of(text: str, fences: Sequence[Block], begin: int = 0) -> Iterator[Block]:
    r"""The markup of a Markdown text outside of its fences, in order and disjoint.

    Each block's title is what is shown in its place. Emphasis and links stay as they
    are, as their marks tell a reader something.

    Examples
    --------
    >>> text = "The <b>rent</b> is &pound;40."
    >>> [(text[block.start : block.end], block.title) for block in markup_of(text, [])]
    [('<b>', ''), ('</b>', ''), ('&pound;', '£')]
    """
    position = begin
    for start, end in [(fence.start, fence.end) for fence in fences]:
        if start >= position:
            yield from _markup_between(text, position, start)
            position = end
    yield from _markup_between(text, position, len(text))


def _markup_between(text: str, start: int, end: int) -> Iterator[Block]:
    # Where a search for the end of a comment, script or style found none.
    without_end: set[str] = set()
    position = start
    while match := _MARKUP.search(text, position, end):
        position = match.end()
        if match["opening"]:
            closing = f"</{match['element']}>" if match["element"] else "-->"
            stop = -1
            if closing not in without_end:
                stop = text.find(closing, position, end)
            if stop < 0:
                without_end.add(closing)
                continue
            position = stop + len(closing)
            yield Block(match.start(), position, "markup")
        elif match["picture"]:
            yield Block(match.start(), match.start("alt"), "markup")
            yield Block(match.end("alt"), match.end(), "markup")
        elif (shown := _shown(match)) is not None:
            yield Block(*match.span(), "markup", title=shown)


def shown_for_tag(name: str, *, closes: bool) -> str | None:
    """What is shown in place of a tag, or None if its name is none of HTML.

    Examples
    --------
    >>> shown_for_tag("b", closes=False), shown_for_tag("Item", closes=False)
    ('', None)
    """
    shown = _SHOWN_FOR_TAG.get(name.lower())
    return "" if shown == _CELL and closes else shown


def _shown(match: re.Match[str]) -> str | None:
    """What is shown in place of markup, or None for what is text."""
    if match["tag"]:
        return shown_for_tag(match["name"], closes=match["tag"].startswith("</"))
    if match["entity"]:
        character = html.unescape(match["entity"])
        return None if character == match["entity"] else character
    return None if match["code"] else ""
