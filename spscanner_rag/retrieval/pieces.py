"""A piece of a document, as a framework's store holds it."""

import operator
from collections.abc import Hashable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A stretch of a source document: the whole document, a page or a chunk.

    Sources of one group are read as one text; those without a group are read alone.

    Parameters
    ----------
    text : str
        The piece.
    key : str
        ``previous`` and ``next`` of other pieces refer to it.
    source : hashable
        The document that ``start`` is an offset in.
    start : int, optional
        Offset in the source in characters; None, or a negative number such as
        LangChain's -1, if unknown.
    group : hashable, optional
        What the sources of one text share.
    position : float, optional
        The place of the source in its group, such as a page number. Sources are joined
        in this order, or in the order of the pieces if one has no position.
    previous, next : str, optional
        The keys of the pieces before and after it in the source, if known.
    page : bool
        Whether the source is a page of the group's document.
    last : bool
        Whether the piece ends its source, as far as is known.

    Examples
    --------
    >>> Piece(text="They left.", key="2", source="a.txt", start=-1).start is None
    True
    """

    text: str
    key: str
    source: Hashable
    start: int | None = None
    group: Hashable | None = None
    position: float | None = None
    previous: str | None = None
    next: str | None = None
    page: bool = False
    last: bool = False

    def __post_init__(self) -> None:
        if self.start is not None:
            start = operator.index(self.start)  # converts numpy integers
            object.__setattr__(self, "start", start if start >= 0 else None)
