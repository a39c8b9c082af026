"""Finds headings, items and rows in the HTML that a Markdown text contains."""

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

from spscanner_rag.text.blocks import Block

_ITEMS = frozenset("li p dt dd summary figcaption caption".split())
_TABLE = "table"
_ROW = "tr"
_BLOCK_TAG = re.compile(
    r"(?P<hidden><!--|<(?P<element>script|style)\b[^<>]*>)"
    rf"|<(?P<closes>/?)(?P<name>h[1-6]|{_TABLE}|{_ROW}|{'|'.join(sorted(_ITEMS))})\b"
    r"[^<>]*>",
    re.IGNORECASE,
)
_TAG = re.compile(r"<[^<>]*>")


class _Open(NamedTuple):
    """An element that has begun."""

    name: str
    start: int


class HtmlBlocks:
    """The blocks of one file's HTML, which may come in several stretches.

    Parameters
    ----------
    text : str
        The Markdown text.

    Examples
    --------
    >>> text = "<h1 align=center>Tolls</h1><ul><li>Ships<li>Boats</ul>"
    >>> for block in HtmlBlocks(text).between(0, len(text)):
    ...     print(block.kind, block.title, text[block.start : block.end])
    heading Tolls <h1 align=center>Tolls</h1>
    item  <li>Ships
    item  <li>Boats</ul>
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._header: tuple[int, int] | None = None  # of the table

    def between(self, start: int, end: int) -> Iterator[Block]:
        """Yield the blocks of a stretch of HTML, in order and disjoint."""
        opened: _Open | None = None
        seen_from = start  # before it is a comment or a script
        for tag in _BLOCK_TAG.finditer(self._text, start, end):
            if tag.start() < seen_from:
                continue
            if tag["hidden"]:
                closing = f"</{tag['element']}" if tag["element"] else "-->"
                stop = self._text.find(closing, tag.end(), end)
                seen_from = stop if stop >= 0 else end
                continue
            name = tag["name"].lower()
            is_in_row = opened is not None and opened.name == _ROW
            if is_in_row and name not in (_ROW, _TABLE):
                continue
            if opened is not None:
                closes_it = tag["closes"] and name == opened.name
                stop = tag.end() if closes_it else tag.start()
                yield from self._closed(opened, stop)
                opened = None
            if name == _TABLE:
                self._header = None
            elif not tag["closes"]:
                opened = _Open(name, tag.start())
        if opened is not None:
            yield from self._closed(opened, end)

    def _closed(self, element: _Open, end: int) -> Iterator[Block]:
        content = _TAG.sub(" ", self._text[element.start : end])
        title = " ".join(html.unescape(content).split())
        if not title:
            return
        span = (element.start, end)
        if element.name == _ROW:
            yield Block(*span, "row", header=self._header)
            if self._header is None:
                self._header = span
        elif element.name in _ITEMS:
            yield Block(*span, "item")
        else:
            level = int(element.name[1])
            yield Block(*span, "heading", level=level, title=title)
