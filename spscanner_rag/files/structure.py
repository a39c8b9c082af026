"""What a reader knows of a document besides its text: pages, headings, list items, fences, rows of tables."""

from typing import Literal, NamedTuple

BlockKind = Literal["heading", "item", "fence", "header", "row"]
"""A heading; a paragraph that stands apart, such as an item of a list; code or other text that is no prose; the
header of a table; a row of a table."""


class Block(NamedTuple):
    """A stretch of a document that is no running text. The blocks of a document are in order and disjoint."""

    start: int
    end: int
    kind: BlockKind
    header: tuple[int, int] | None = None  # of a row: the span of its table's header
    level: int = 0  # of a heading, from 1
    title: str = ""  # of a heading: its words, without markup


class PageStart(NamedTuple):
    """Where a page begins in the text."""

    start: int
    number: int  # from 1
    label: str  # what a viewer calls it, such as "iv"; mostly the number

    @property
    def name(self) -> str:
        """As in "page 12", or "page iv (4)" where the label is not the number."""
        return f"page {self.label}" + ("" if self.label == str(self.number) else f" ({self.number})")


class Converted(NamedTuple):
    """What a reader makes of a file."""

    text: str
    blocks: tuple[Block, ...] = ()
    pages: tuple[PageStart, ...] = ()
    notes: tuple[str, ...] = ()  # what could not be read
