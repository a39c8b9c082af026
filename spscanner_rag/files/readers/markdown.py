"""Markdown, as it is: the text stays, so that positions are those of the file, and its blocks are found.

Blocks are those of CommonMark, with the tables of GitHub, as markdown-it-py finds them. Inline markup is not read.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.text_builder import decoded
from spscanner_rag.text.blocks import Block

if TYPE_CHECKING:
    from markdown_it.token import Token

_LINE_BREAK = re.compile("\r\n|\r|\n")
_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n.*?\n(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL)


def read_markdown(name: str, data: bytes) -> TextFile:
    """Read a Markdown file; ``ValueError`` if it is not UTF-8."""
    text = decoded(name, data)
    return TextFile("", text, tuple(blocks_of(text)))


def blocks_of(text: str) -> list[Block]:
    """The blocks of a Markdown text, in order and disjoint."""
    from markdown_it import MarkdownIt

    begin, blocks = 0, []
    if front := _FRONT_MATTER.match(text):  # settings of a site generator
        begin = front.end()
        blocks.append(Block(0, len(front[0].rstrip()), "fence"))
    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    breaks = [found.end() for found in _LINE_BREAK.finditer(text, begin)]
    blocks += _blocks(text, [begin, *breaks, len(text)], parser.parse(text[begin:]))
    return blocks


def _blocks(text: str, starts: Sequence[int], tokens: Sequence["Token"]) -> Iterator[Block]:
    """The blocks of the lines that begin at ``starts``."""

    def span(first: int, stop: int) -> tuple[int, int]:
        start, content = starts[first], text[starts[first] : starts[stop]]
        return start + len(content) - len(content.lstrip()), start + len(content.rstrip())

    header = (0, 0)
    for number, token in enumerate(tokens):
        if token.map is None:
            continue
        first, stop = token.map
        match token.type:
            case "heading_open":
                title = " ".join(tokens[number + 1].content.split())
                yield Block(*span(first, stop), "heading", level=int(token.tag[1:]), title=title)
            case "fence" | "code_block":
                yield Block(*span(first, stop), "fence")
            case "paragraph_open" if token.level:  # of a list or a quotation
                yield Block(*span(first, stop), "item")
            case "thead_open":
                header = span(first, stop)
                yield Block(*span(first, stop + 1), "header")  # with the dashes below
            case "tr_open" if starts[first] > header[0]:
                yield Block(*span(first, stop), "row", header=header)
