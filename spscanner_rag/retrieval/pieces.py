"""Join the pieces of documents that a framework passes to texts that the scorer can read.

A piece is a whole document, a page or a chunk. Text that chunks share is included once, and white space that a
splitter dropped is replaced by as many characters. Where text is missing, or a page or document ends, a new *run*
begins. No sentence extends over two runs, unless they are pages that follow each other (`joined_text.join_pages`).
"""

import math
import operator
import re
from bisect import bisect_right
from collections.abc import Container, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from spscanner_rag.retrieval.chunk_location import ChunkLocator, TextIndex, order_by_overlap, overlap
from spscanner_rag.retrieval.joined_text import (
    JoinedText,
    JoinedTextBuilder,
    Page,
    Placed,
    SpanIndex,
    join_pages,
)

LARGEST_WHITE_GAP = 8
"""A gap of at most this many characters between two chunks is white space that the splitter dropped. In a longer
one text is missing, or a paragraph ends."""

_NUMBER = re.compile(r"\s*\d+(\.\d+)?\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A stretch of a source document.

    ``start`` is its offset there in characters; None, or a negative number such as LangChain's -1, if unknown.
    Sources of one ``group`` are read as one text by their ``position``, such as a page number, or as given; others
    alone.
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


Pieces = Sequence[Piece] | Mapping[int, Piece]  # pieces by their indices


def join_pieces(pieces: Sequence[Piece], sources: Mapping[Hashable, str] | None = None) -> list[JoinedText]:
    """Join pieces, group by group, in the order in which the groups first appear.

    Pieces of one source are ordered by ``start`` where it is known, else by their links, else so that a piece
    follows the one whose end it begins with, else as given. One without a place whose text is in others is read
    there. With its whole text in ``sources``, a source is read whole, and every span in it is exact.
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
    if text is None:
        numbers, alone = _add_chunks(builder, source, own, pieces)
    else:
        numbers = _filled(in_reading_order(own, pieces), pieces)
        alone = _add_source(builder, source, text, numbers, pieces)
    for number in numbers:
        if number in alone:
            builder.begin(source, None)
            builder.append(pieces[number].text, number)


def _filled(numbers: Sequence[int], pieces: Pieces) -> list[int]:
    """Those with text, or white space at a known place."""
    return [n for n in numbers if pieces[n].text.strip() or pieces[n].start is not None]


class _Block(NamedTuple):
    """Pieces whose places follow from their offsets, or one without a place."""

    numbers: list[int]
    text: str
    placed: bool


def _add_chunks(
    builder: JoinedTextBuilder, source: Hashable, own: Sequence[int], given: Sequence[Piece]
) -> tuple[list[int], set[int]]:
    """Add pieces by their offsets, others by their text; returns those with text, and those that did not fit."""
    doubtful = _doubtful(_filled(in_reading_order(own, given), given), given)
    pieces = {n: replace(given[n], start=None) if n in doubtful else given[n] for n in own}
    ordered = _filled(in_reading_order(own, pieces), pieces)
    if len(ordered) < 2 or all(pieces[number].start is not None for number in ordered):
        _add_pieces(builder, source, ordered, pieces)
        return ordered, set()
    blocks = _blocks(source, ordered, pieces)
    holders = _holders(blocks, own, pieces)
    kept = [number for number in range(len(blocks)) if number not in holders]
    linked = {n for chain in _chains(own, pieces) if len(chain) > 1 for n in chain}
    flat = [
        number for n in _in_order([blocks[n] for n in kept], linked) for number in blocks[kept[n]].numbers
    ]
    starts = _add_pieces(builder, source, flat, pieces)
    locators = {host: ChunkLocator(blocks[host].text) for host in holders.values()}
    not_found = set()
    for inner, host in holders.items():
        number, begin = blocks[inner].numbers[0], starts[blocks[host].numbers[0]]
        found = locators[host].locate(blocks[inner].text)
        if found is None or not builder.reads(
            begin + found.start, blocks[host].text[found.start : found.end]
        ):
            not_found.add(number)
            continue
        span = begin + found.start, begin + found.end
        builder.place(Placed(*span, number, found.exact, anchored=blocks[host].placed))
    return ordered, not_found


def _chain_of(numbers: Sequence[int], pieces: Pieces) -> dict[int, int]:
    return {n: chain for chain, members in enumerate(_chains(numbers, pieces)) for n in members}


def _blocks(source: Hashable, numbers: Sequence[int], pieces: Pieces) -> list[_Block]:
    """The stretches that pieces with an offset cover without a gap, and the other pieces, in reading order."""
    builder = JoinedTextBuilder()
    known = [number for number in numbers if pieces[number].start is not None]
    starts = _add_pieces(builder, source, known, pieces, white_gap=0)
    joined = builder.joined()
    runs = {run.start: _Block([], joined.text[run.start : run.end], True) for run in joined.runs}
    own: list[_Block] = []
    begins = sorted(runs)
    for number in numbers:
        if number not in starts:
            own.append(_Block([number], pieces[number].text, False))
            continue
        run = runs.get(begins[bisect_right(begins, starts[number]) - 1]) if begins else None
        if run is None or not pieces[number].text:
            continue
        if not run.numbers:
            own.append(run)
        run.numbers.append(number)
    return own


def _holders(blocks: Sequence[_Block], numbers: Sequence[int], pieces: Pieces) -> dict[int, int]:
    """For each block without a place that unlinked others contain, the largest of these, by their indices."""
    chain_of = _chain_of(numbers, pieces)
    chains = [{chain_of[number] for number in block.numbers} for block in blocks]
    index = TextIndex([block.text for block in blocks])

    def size(number: int) -> tuple[int, bool, int]:
        return len(index.texts[number]), blocks[number].placed, -number

    holders: dict[int, int] = {}
    for number, block in enumerate(blocks):
        if not block.placed and block.text.strip():
            others = (h for h in index.holders(block.text) if size(h) > size(number))
            found = max((h for h in others if not chains[h] & chains[number]), key=size, default=None)
            if found is not None:
                holders[number] = found
    for number in sorted(holders, key=size, reverse=True):  # what contains it may itself be in another
        holders[number] = holders.get(holders[number], holders[number])
    return holders


def _in_order(blocks: Sequence[_Block], linked: Container[int]) -> list[int]:
    """Indices of blocks: each that has no place and no links follows the one whose end it begins with."""
    placed = {number for number, block in enumerate(blocks) if block.placed}
    free = [block.text if block.placed or block.numbers[0] not in linked else "" for block in blocks]
    order = order_by_overlap(free, placed)
    return order if sorted(placed) == [n for n in order if n in placed] else list(range(len(blocks)))


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
    builder: JoinedTextBuilder,
    source: Hashable,
    numbers: Sequence[int],
    pieces: Pieces,
    white_gap: int = LARGEST_WHITE_GAP,
) -> dict[int, int]:
    """Add pieces whose offsets are consistent, and return where each begins; others follow the one before."""
    before: Piece | None = None
    starts = {}
    for number in numbers:
        text, start = pieces[number].text, pieces[number].start
        gap = None if start is None else builder.gap(source, start)
        if gap is None:
            shared = overlap(builder.tail(source, len(text)), text)
            if not shared:
                builder.begin(source, start)
        else:
            shared = max(0, -gap)
            missing = gap > white_gap or (gap > 0 and _another_between(before, pieces[number]))
            if missing or not builder.ends_with(text, shared):
                builder.begin(source, start)
                shared = 0
            elif gap > 0:
                # On a page, the white space may be that before a footer, which has to be a line of its own.
                builder.fill(" " if gap == 1 and not pieces[number].page else "\n" * gap)
        starts[number] = builder.length - shared
        builder.append(text, number, shared=shared, source_start=start)
        before = pieces[number]
    return starts


def _another_between(before: Piece | None, piece: Piece) -> bool:
    """Whether the links of two pieces show that a piece between them is missing."""
    return before is not None and (
        before.next not in (None, piece.key) or piece.previous not in (None, before.key)
    )


def _doubtful(numbers: Sequence[int], pieces: Sequence[Piece]) -> set[int]:
    """Indices of the pieces whose offsets contradict one another, or are those in a larger piece."""
    doubtful = sorted(_contradicting(numbers, pieces))
    if not doubtful:
        return set()
    index = TextIndex([pieces[number].text for number in doubtful])
    inner = set()
    for number in doubtful:
        text, start = pieces[number].text, pieces[number].start
        holders = (pieces[doubtful[holder]].text for holder in index.holders(text))
        if any(len(whole) > len(text) and whole.startswith(text, start) for whole in holders):
            inner.add(number)
    return inner | _contradicting([number for number in numbers if number not in inner], pieces)


def _contradicting(numbers: Sequence[int], pieces: Pieces) -> set[int]:
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
    return {number for number, span in spans.items() if number in misfits or doubtful.near(*span)}


def in_reading_order(numbers: Sequence[int], pieces: Pieces) -> list[int]:
    """Sort the indices of the pieces of one source into reading order, by ``start``.

    One without goes after the nearest earlier piece in its chain of links that has one, else before the nearest
    later one. Chains without any come last, in the order given.
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


def _chains(numbers: Sequence[int], pieces: Pieces) -> list[list[int]]:
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
