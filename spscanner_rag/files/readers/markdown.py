"""Reads Markdown unchanged, with its blocks and the markup that is not shown."""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.markdown_html import HtmlBlocks
from spscanner_rag.files.readers.markdown_markup import markup_of
from spscanner_rag.files.readers.text_builder import decoded
from spscanner_rag.text.blocks import Block, in_order
from spscanner_rag.text.visible_text import shown

if TYPE_CHECKING:
    from markdown_it.token import Token

_LINE_BREAK = re.compile("\r\n|\r|\n")
_HEADING_MARKS = re.compile(
    r"^#{1,6}[ \t]+|[ \t]+(?:#+|=+|-+)$|^#+$|[ \t]+\{[#.][^{}]{1,80}\}(?=$|[ \t]+#+$)"
)
_LINK = re.compile(r"!?\[([^\[\]]{0,300})\]\([^()\s]{0,2000}(?:\s[^()]{0,300})?\)")
_QUOTE_MARKS = re.compile(r"[ \t]*(?:>[ \t]?)+")
_FRONT_MATTER = re.compile(
    r"---[ \t]*\r?\n.*?\n(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL
)


def markdown_work(data: bytes) -> int:
    """Return the bytes that Markdown counts for.

    Its parser needs 500 bytes for each short line.
    """
    return 4 * len(data)


def read_markdown(data: bytes) -> TextFile:
    """Read a Markdown file.

    ``ValueError`` if it is not UTF-8 or UTF-16.
    """
    text = decoded(data)
    return TextFile("", text, tuple(blocks_of(text)))


def blocks_of(text: str) -> list[Block]:
    """The blocks of CommonMark with GitHub's tables, in order.

    They are disjoint, but for markup, which may lie within others.
    """
    from markdown_it import MarkdownIt

    begin = 0
    blocks = []
    if front := _FRONT_MATTER.match(text):  # settings of a site generator
        begin = front.end()
        blocks.append(Block(0, len(front[0].rstrip()), "fence"))
    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    breaks = [line_break.end() for line_break in _LINE_BREAK.finditer(text, begin)]
    lines = _Lines(text, [begin, *breaks, len(text)])
    tokens = parser.parse(text[begin:])
    blocks += lines.blocks(tokens)
    marks = list(lines.marks(tokens))
    fences = [block for block in blocks if block.kind == "fence"]
    skipped = in_order([*fences, *marks])
    markup = in_order([*marks, *markup_of(text, skipped)])
    if not markup:
        return blocks
    for number, block in enumerate(blocks):
        if block.kind == "heading":
            title = _title_without_markup(text, block, markup)
            blocks[number] = block._replace(title=title)
    return in_order([*blocks, *markup])


def _title_without_markup(text: str, heading: Block, markup: Sequence[Block]) -> str:
    marked = shown(text, heading.start, heading.end, markup)
    title = _HEADING_MARKS.sub("", " ".join(marked.split()))
    return _without_links(title) or heading.title


def _without_links(title: str) -> str:
    """A title with the words of links and pictures alone.

    Examples
    --------
    >>> _without_links("Mill [![build](b.svg)](https://a.org) and [rent](#rent)")
    'Mill build and rent'
    """
    if "](" not in title:
        return title
    without_pictures = _LINK.sub(r"\1", title)
    return " ".join(_LINK.sub(r"\1", without_pictures).split())


class _Lines:
    """The lines of a text, and the blocks that a parser finds in them."""

    def __init__(self, text: str, starts: Sequence[int]) -> None:
        self._text = text
        self._starts = starts  # of the lines, and the end of the text

    def blocks(self, tokens: Sequence["Token"]) -> Iterator[Block]:
        """The blocks of a parser's tokens."""
        header = (0, 0)
        html_blocks = HtmlBlocks(self._text)
        for number, token in enumerate(tokens):
            if token.map is None:
                continue
            first, stop = token.map
            span = self._span(first, stop)
            match token.type:
                case "heading_open":
                    level = int(token.tag[1:])
                    title = " ".join(tokens[number + 1].content.split())
                    title = _without_links(title)
                    yield Block(*span, "heading", level=level, title=title)
                case "html_block":
                    yield from html_blocks.between(*span)
                case "fence" | "code_block":
                    yield Block(*span, "fence")
                case "paragraph_open" if token.level:  # in a list or a quotation
                    yield Block(*span, "item")
                case "thead_open":
                    # A row too, since converters put data there. Its rule of dashes
                    # belongs to it.
                    header = span
                    yield Block(*self._span(first, stop + 1), "row")
                case "tr_open" if self._starts[first] > header[0]:
                    yield Block(*span, "row", header=header)

    def marks(self, tokens: Sequence["Token"]) -> Iterator[Block]:
        """Rules, and the marks of quotations, which say nothing.

        Markup without a title, in order and disjoint.
        """
        quoted_to = 0  # lines
        for token in tokens:
            if token.map is None:
                continue
            first, stop = token.map
            match token.type:
                case "hr":
                    yield Block(*self._span(first, stop), "markup")
                case "thead_open":
                    rule = self._starts[stop : stop + 2]
                    yield Block(rule[0], rule[1], "markup")
                case "blockquote_open":
                    for line in range(max(first, quoted_to), stop):
                        yield from self._quote_marks(line)
                    quoted_to = max(quoted_to, stop)

    def _quote_marks(self, line: int) -> Iterator[Block]:
        start = self._starts[line]
        marks = _QUOTE_MARKS.match(self._text, start, self._starts[line + 1])
        if marks is not None:
            yield Block(*marks.span(), "markup")

    def _span(self, first: int, stop: int) -> tuple[int, int]:
        """Where some lines begin and end, without white space."""
        start = self._starts[first]
        content = self._text[start : self._starts[stop]]
        n_before = len(content) - len(content.lstrip())
        return start + n_before, start + len(content.rstrip())
