"""Markdown, as it is: the text stays, so that positions are those of the file, and its blocks are found.

markdown-it-py finds the blocks as CommonMark says, and tables as GitHub has them. Its parser of inline markup
is off: a title is only read.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from spscanner_rag.files.documents import Converted
from spscanner_rag.files.readers.text_builder import decoded
from spscanner_rag.text.blocks import Block

if TYPE_CHECKING:
    from markdown_it.token import Token

_LINE = re.compile("\r\n|\r|\n")
_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n.*?\n(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL)


def read_markdown(name: str, data: bytes) -> Converted:
    """Read a Markdown file; ``ValueError`` if it is not UTF-8."""
    text = decoded(name, data)
    return Converted(text, tuple(blocks_of(text)))


def blocks_of(text: str) -> list[Block]:
    """The blocks of a Markdown text."""
    from markdown_it import MarkdownIt

    begin, blocks = 0, []
    if front := _FRONT_MATTER.match(text):  # settings of a site generator
        begin = front.end()
        blocks.append(Block(0, len(front[0].rstrip()), "fence"))
    lines = [begin, *(match.end() for match in _LINE.finditer(text, begin)), len(text)]
    parser = MarkdownIt("commonmark").enable("table").disable("inline")
    last = begin
    for block in _blocks(text, lines, parser.parse(text[begin:].replace("\0", " "))):
        if block.start >= last:
            blocks.append(block)
            last = block.end
    return blocks


def _blocks(text: str, lines: Sequence[int], tokens: "Sequence[Token]") -> Iterator[Block]:
    header: tuple[int, int] | None = None
    in_head = False
    for number, token in enumerate(tokens):
        match token.type:
            case "thead_open":
                in_head, header = True, None
            case "thead_close":
                in_head = False
        if token.map is None:
            continue
        start, end = lines[token.map[0]], lines[min(token.map[1], len(lines) - 1)]
        content = text[start:end]
        end = start + len(content.rstrip())
        start += len(content) - len(content.lstrip())
        if start >= end:
            continue
        match token.type:
            case "heading_open":
                title = " ".join(tokens[number + 1].content.split())
                yield Block(start, end, "heading", level=int(token.tag[1:]), title=title)
            case "fence" | "code_block":
                yield Block(start, end, "fence")
            case "paragraph_open" if token.level:  # in a list or a quotation
                yield Block(start, end, "item")
            case "tr_open" if in_head:
                header = (start, end)
                line = lines[min(token.map[1] + 1, len(lines) - 1)]  # behind the line of dashes
                yield Block(start, start + len(text[start:line].rstrip()), "header")
            case "tr_open":
                yield Block(start, end, "row", header=header)
