"""Join the pieces of documents that a framework passes to texts that the scorer can read.

A piece is a whole document, a page or a chunk. The pieces of one group become one `JoinedText`, in reading order.
Text that chunks share is included once, and white space that a splitter dropped is replaced by as many characters.
Where text is missing, or a page or document ends, a new *run* begins. No sentence extends over two runs, unless
they are pages that follow each other (`pages.join_pages`).
"""

import math
import operator
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from spscanner_rag.retrieval.chunk_location import ChunkLocator, order_by_overlap, overlap
from spscanner_rag.retrieval.joined_text import JoinedText, JoinedTextBuilder, Placed, SpanIndex
from spscanner_rag.retrieval.pages import Page, join_pages

LARGEST_WHITE_GAP = 8
"""A gap of at most this many characters between two chunks is white space that the splitter dropped. In a longer
one text is missing, or a paragraph ends."""

_NUMBER = re.compile(r"\s*\d+(\.\d+)?\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A stretch of a source document.

    ``start`` is its offset in the source, in characters; None, or a negative number such as LangChain's -1, if
    unknown. Sources of one ``group`` are read as one text, such as the pages of a file, by their ``position``, a
    page number for instance, or as given; without a group, the source is read alone.
    """

    text: str
    key: str  # ``previous`` and ``next`` of other pieces refer to it
    source: Hashable  # the document that ``start`` is an offset in
    start: int | None = None
    group: Hashable | None = None
    position: float | None = None
    previous: str | None = None  # the key of the piece before it in the source, if known
    next: str | None = None
    page: bool = False  # whether the source is a page of the group's document
    last: bool = False  # whether nothing of the source follows the piece, as far as is known

    def __post_init__(self) -> None:
        if self.start is not None:
            start = operator.index(self.start)  # converts numpy integers
            object.__setattr__(self, "start", start if start >= 0 else None)


def join_pieces(pieces: Sequence[Piece], sources: Mapping[Hashable, str] | None = None) -> list[JoinedText]:
    """Join pieces, group by group, in the order in which the groups first appear.

    Parameters
    ----------
    pieces
        In any order. Pieces of one source are ordered by ``start`` where it is known, else by ``previous`` and
        ``next``, else so that a piece follows the one whose end it begins with, else as given.
    sources
        Whole texts of sources, if available. Such a source is read whole, and every span in it is exact.
    """
    groups: dict[Hashable, dict[Hashable, list[int]]] = {}
    for number, piece in enumerate(pieces):
        group = ("source", piece.source) if piece.group is None else ("group", piece.group)
        groups.setdefault(group, {}).setdefault(piece.source, []).append(number)
    return [_join_group(pieces, group, sources or {}) for group in groups.values()]


def _join_group(
    pieces: Sequence[Piece], group: dict[Hashable, list[int]], sources: Mapping[Hashable, str]
) -> JoinedText:
    positions = {source: pieces[numbers[0]].position for source, numbers in group.items()}
    ordered = list(group)
    if all(position is not None for position in positions.values()):
        ordered.sort(key=lambda source: positions[source] or 0)
    if len(ordered) > 1 and all(pieces[number].page for numbers in group.values() for number in numbers):
        return join_pages(
            [_as_page(pieces, source, group[source], sources.get(source)) for source in ordered]
        )
    builder = JoinedTextBuilder()
    for source in ordered:
        _add(builder, pieces, source, group[source], sources.get(source))
    return builder.joined()


def _as_page(pieces: Sequence[Piece], source: Hashable, numbers: Sequence[int], text: str | None) -> Page:
    builder = JoinedTextBuilder()
    _add(builder, pieces, source, numbers, text)
    joined = builder.joined()
    at_start = len(joined.runs) == 1 and joined.runs[0].source_start == 0
    reach = max((placed.end for placed in joined.placed if pieces[placed.number].last), default=0)
    whole = at_start and (text is not None or reach == len(joined.text))
    return Page(joined, pieces[numbers[0]].position, whole)


def _add(
    builder: JoinedTextBuilder,
    pieces: Sequence[Piece],
    source: Hashable,
    own: Sequence[int],
    text: str | None,
) -> None:
    """Add one source: its whole text if it is known, else its pieces."""
    numbers = in_reading_order(own, pieces)
    numbers = [n for n in numbers if pieces[n].text.strip() or pieces[n].start is not None]
    if text is None:
        if len(numbers) > 1 and all(_unplaced(pieces[number]) for number in numbers):
            numbers = [numbers[n] for n in order_by_overlap([pieces[number].text for number in numbers])]
        alone = _contradicting(numbers, pieces)
        _add_pieces(builder, source, [number for number in numbers if number not in alone], pieces)
    else:
        alone = _add_source(builder, source, text, numbers, pieces)
    for number in numbers:
        if number in alone:
            builder.begin(source, None)
            builder.append(pieces[number].text, number)


def _unplaced(piece: Piece) -> bool:
    """Whether nothing but its text shows where a piece belongs."""
    return piece.start is None and piece.previous is None and piece.next is None


def _add_source(
    builder: JoinedTextBuilder, source: Hashable, text: str, numbers: Sequence[int], pieces: Sequence[Piece]
) -> set[int]:
    """Add a whole source and locate its pieces; return the indices of those that do not occur in it."""
    builder.begin(source, 0)
    begin = builder.length
    builder.fill(text)
    locator = ChunkLocator(text)
    not_found = set()
    for number in numbers:
        found = locator.locate(pieces[number].text, pieces[number].start)
        if found is not None:
            builder.place(Placed(begin + found.start, begin + found.end, number, found.exact))
        elif pieces[number].text.strip():
            not_found.add(number)
    return not_found


def _add_pieces(
    builder: JoinedTextBuilder, source: Hashable, numbers: Sequence[int], pieces: Sequence[Piece]
) -> None:
    """Add pieces whose offsets are consistent; the position of those without an offset is guessed."""
    before: Piece | None = None
    for number in numbers:
        text, start = pieces[number].text, pieces[number].start
        gap = None if start is None else builder.gap(source, start)
        if gap is None:
            shared = overlap(builder.tail(source, len(text)), text)
            if not shared:
                builder.begin(source, start)
        else:
            shared = max(0, -gap)
            missing = gap > LARGEST_WHITE_GAP or (gap > 0 and _another_between(before, pieces[number]))
            if missing or not builder.ends_with(text, shared):
                builder.begin(source, start)
                shared = 0
            elif gap > 0:
                # On a page, the white space may be that before a footer, which has to be a line of its own.
                builder.fill(" " if gap == 1 and not pieces[number].page else "\n" * gap)
        builder.append(text, number, shared=shared, source_start=start)
        before = pieces[number]


def _another_between(before: Piece | None, piece: Piece) -> bool:
    """Whether the links of two pieces show that a piece between them is missing."""
    return before is not None and (
        before.next not in (None, piece.key) or piece.previous not in (None, before.key)
    )


def _contradicting(numbers: Sequence[int], pieces: Sequence[Piece]) -> set[int]:
    """Indices of the pieces whose offsets contradict one another; any of these may be wrong."""
    if len(numbers) < 2:
        return set()
    builder = JoinedTextBuilder()
    spans: dict[int, tuple[int, int]] = {}
    misfits: dict[int, tuple[int, int]] = {}
    for number in numbers:
        text, start = pieces[number].text, pieces[number].start
        if start is None:
            continue
        gap = builder.gap(None, start)
        if gap is None or gap > 0:
            builder.begin(None, start)
            gap = 0
        spans[number] = (start, start + len(text))
        if builder.ends_with(text, -gap):
            builder.append(text, number, shared=-gap, source_start=start)
        else:
            misfits[number] = spans[number]
    doubtful = SpanIndex(misfits.values())
    return {number for number, span in spans.items() if number in misfits or doubtful.touch(*span)}


def in_reading_order(numbers: Sequence[int], pieces: Sequence[Piece]) -> list[int]:
    """Sort the indices of the pieces of one source into reading order, by ``start``.

    A piece without ``start`` goes after the nearest earlier piece in its chain of links that has one, else before
    the nearest later one. Chains without any come last, in the order given.
    """
    if all(pieces[number].start is not None for number in numbers):
        return sorted(numbers, key=lambda number: pieces[number].start or 0)
    order: dict[int, tuple[float, int, int]] = {}
    for chain in _chains(numbers, pieces):
        starts = (pieces[number].start for number in chain)
        place: float = next((start for start in starts if start is not None), math.inf)
        first = min(chain)
        for link, number in enumerate(chain):
            start = pieces[number].start
            place = place if start is None else start
            order[number] = (place, first, link)
    return sorted(numbers, key=order.__getitem__)


def _chains(numbers: Sequence[int], pieces: Sequence[Piece]) -> list[list[int]]:
    by_key = {pieces[number].key: number for number in numbers}
    following: dict[int, int] = {}
    for number in numbers:
        piece = pieces[number]
        if piece.next in by_key:
            following.setdefault(number, by_key[piece.next])
        if piece.previous in by_key:
            following.setdefault(by_key[piece.previous], number)
    followers = set(following.values())
    heads = [number for number in numbers if number not in followers]
    chains: list[list[int]] = []
    seen: set[int] = set()
    for head in [*heads, *numbers]:  # all of them again, because a circular chain has no head
        chain: list[int] = []
        link: int | None = head
        while link is not None and link not in seen:
            seen.add(link)
            chain.append(link)
            link = following.get(link)
        if chain:
            chains.append(chain)
    return chains


def page_number(value: object) -> float | None:
    """Parse a page number of a document's metadata, a number or numeric string; None for anything else."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
