"""Blocks, the stretches of a text that are not running text."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, Protocol, runtime_checkable

BlockKind = Literal["heading", "item", "fence", "header", "row", "turn", "markup"]
"""A heading; a separate paragraph, such as an item of a list; code or other text
that is not prose; the header of a table; a row of a table, or another record; a turn
of a conversation; a tag or an escape, which is neither read nor shown."""


class Block(NamedTuple):
    """A stretch of a text that is not running text.

    The blocks of a text are in order and disjoint, but for markup, which is disjoint
    among itself and may lie within other blocks.

    Parameters
    ----------
    start, end : int
        Its span in characters.
    kind : str
        One of `BlockKind`.
    header : tuple of int, optional
        Of a row: the span of its table's header. Of a turn: its own beginning.
    level : int
        Of a heading, from 1.
    title : str
        Of a heading: its words, without markup; one without ends the headings above.
        Of a turn: its time and speaker. Of markup: what is shown in its place, such as
        "&" for "&amp;".
    """

    start: int
    end: int
    kind: BlockKind
    header: tuple[int, int] | None = None
    level: int = 0
    title: str = ""


def in_order(blocks: Iterable[Block]) -> list[Block]:
    """Blocks by where they begin, with markup after the block that begins there.

    Examples
    --------
    >>> [block.kind for block in in_order([Block(0, 2, "markup"), Block(0, 9, "row")])]
    ['row', 'markup']
    """
    return sorted(blocks, key=lambda block: (block.start, block.kind == "markup"))


@runtime_checkable
class StructuredText(Protocol):
    """A text with its blocks, as `spscanner_rag.files.read` returns it.

    The blocks are as `Block` says.
    """

    @property
    def text(self) -> str:
        """The text."""

    @property
    def blocks(self) -> Sequence[Block]:
        """Its blocks."""
