"""Join the pieces of documents that a framework passes into texts that the scorer can read.

A piece is a whole document, a page or a chunk. Text that chunks share is included once,
and white space that a splitter dropped is replaced by as many characters. Where text is
missing, or a page or document ends, a new *run* begins. No sentence extends over two
runs unless they are consecutive pages (`joined_text.join_parts`).
"""

import math
import operator
import re
from collections.abc import Container, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.retrieval.joined_text import (
    JoinedText,
    JoinedTextBuilder,
    Part,
    Placed,
    join_parts,
)

LARGEST_WHITE_GAP = 8
"""A gap of at most this many characters between two chunks is white space that the
splitter dropped. In a longer gap, text is missing or a paragraph ends."""

SHORTEST_OVERLAP = (
    16  # minimum overlap of two chunks, in characters; a shorter one may be coincidence
)
LARGEST_OVERLAPS_TRIED = 256
"""Limit for chunks that repeat one line over and over; their overlap may be missed."""

LARGEST_SEARCH = (
    10**10
)  # characters searched for chunks within others; this many take two seconds

_NUMBER = re.compile(r"\s*\d+(\.\d+)?\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A stretch of a source document.

    ``start`` is its offset there in characters; None, or a negative number such as
    LangChain's -1, if unknown. Sources of one ``group`` are read as one text, by
    ``position``, such as a page number, or else as given. Those without a group are
    read alone.
    """

    text: str
    key: str  # ``previous`` and ``next`` of other pieces refer to it
    source: Hashable  # the document that ``start`` is an offset in
    start: int | None = None
    group: Hashable | None = None
    position: float | None = None
    previous: str | None = (
        None  # the key of the piece before it in the source, if known
    )
    next: str | None = None
    page: bool = False  # whether the source is a page of the group's document
    last: bool = False  # whether the piece ends its source, as far as is known

    def __post_init__(self) -> None:
        if self.start is not None:
            start = operator.index(self.start)  # converts numpy integers
            object.__setattr__(self, "start", start if start >= 0 else None)


def join_pieces(
    pieces: Sequence[Piece], sources: Mapping[Hashable, str] | None = None
) -> list[JoinedText]:
    """Join pieces, group by group, in the order in which the groups first appear.

    Pieces of one source are ordered by ``start`` if it is known, else by their links,
    else so that a piece follows the one whose end it begins with, else as given. A
    piece without a start is placed where its text occurs in pieces with one. If starts
    contradict each other, those of pieces within larger ones are ignored, or else all.
    A source whose whole text is in ``sources`` is read whole, and every span in it is
    exact.
    """
    groups: dict[Hashable, dict[Hashable, list[int]]] = {}
    for number, piece in enumerate(pieces):
        group = (
            ("source", piece.source) if piece.group is None else ("group", piece.group)
        )
        groups.setdefault(group, {}).setdefault(piece.source, []).append(number)
    return [_join_group(pieces, group, sources or {}) for group in groups.values()]


def _join_group(
    pieces: Sequence[Piece],
    group: dict[Hashable, list[int]],
    sources: Mapping[Hashable, str],
) -> JoinedText:
    positions = {
        source: pieces[numbers[0]].position for source, numbers in group.items()
    }
    ordered = list(group)
    if all(position is not None for position in positions.values()):
        ordered.sort(key=lambda source: positions[source] or 0)
    pages = len(ordered) > 1 and all(
        pieces[number].page for numbers in group.values() for number in numbers
    )
    parts = []
    for source in ordered:
        text = sources.get(source)
        joined = _joined(pieces, source, group[source], text)
        at_start = len(joined.runs) == 1 and joined.runs[0].source_start == 0
        reach = max(
            (placed.end for placed in joined.placed if pieces[placed.number].last),
            default=0,
        )
        whole = at_start and (text is not None or reach == len(joined.text))
        parts.append(Part(joined, positions[source], pages and whole))
    return join_parts(parts)


def _joined(
    given: Sequence[Piece], source: Hashable, numbers: Sequence[int], text: str | None
) -> JoinedText:
    """The text of one source: its whole text if that is known, else its pieces joined."""
    pieces = {
        n: given[n]
        for n in numbers
        if given[n].text.strip() or given[n].start is not None
    }
    builder = JoinedTextBuilder(source)
    if text is None:
        _add_chunks(builder, source, pieces)
        return builder.joined()
    builder.begin(0)
    builder.fill(text)
    locator, not_found = ChunkLocator(text), []
    for number in in_reading_order(pieces):
        found = locator.locate(pieces[number].text, pieces[number].start)
        if found is not None:
            start, end, exact = found
            builder.place(Placed(start, end, number, exact))
        elif pieces[number].text.strip():
            not_found.append(number)
    for number in not_found:
        builder.begin(None)
        builder.append(pieces[number].text, number)
    return builder.joined()


def _add_chunks(
    builder: JoinedTextBuilder, source: Hashable, pieces: dict[int, Piece]
) -> None:
    """Add pieces by their offsets, as far as these agree, and by links and shared text."""
    known = {
        number: piece for number, piece in pieces.items() if piece.start is not None
    }
    base = JoinedTextBuilder(source)
    if not _add_pieces(base, in_reading_order(known), known):
        known, base = (
            _outer(known),
            JoinedTextBuilder(source),
        )  # chunks of a chunk have offsets in that chunk
        if not _add_pieces(base, in_reading_order(known), known):
            known = {}
        pieces = {
            number: known.get(number, replace(piece, start=None))
            for number, piece in pieces.items()
        }
    if known and len(known) < len(pieces):
        pieces = pieces | _placed_in(base.joined(), pieces)
    order = in_reading_order(pieces)
    placed = {number for number in order if pieces[number].start is not None}
    linked = any(piece.previous or piece.next for piece in pieces.values())
    if len(placed) < len(order) and not linked:
        texts = [pieces[number].text for number in order]
        by_text = [order[n] for n in order_by_overlap(texts, range(len(placed)))]
        if [number for number in by_text if number in placed] == order[: len(placed)]:
            order = by_text
    _add_pieces(builder, order, pieces)


def _outer(pieces: Mapping[int, Piece]) -> dict[int, Piece]:
    """The pieces whose text is in no longer piece.

    None of them if the search would take too long.
    """
    texts = sorted({piece.text for piece in pieces.values()}, key=len, reverse=True)
    joined = "\0".join(texts)
    if len(texts) * len(joined) > LARGEST_SEARCH:
        return {}
    begins = dict(
        zip(
            texts,
            accumulate((len(text) + 1 for text in texts), initial=0),
            strict=False,
        )
    )
    return {
        n: piece
        for n, piece in pieces.items()
        if joined.find(piece.text) == begins[piece.text]
    }


def _placed_in(base: JoinedText, pieces: Mapping[int, Piece]) -> dict[int, Piece]:
    """Pieces, linked to none with an offset, that occur in the text of those with offsets; with offsets there."""
    found = {}
    for chain in _chains(pieces):
        if any(pieces[number].start is not None for number in chain):
            continue
        for number in chain:
            text = pieces[number].text
            at = base.text.find(text)
            runs = base.runs_of(at, at + len(text)) if at >= 0 else ()
            for run in runs:
                if (
                    run.source_start is not None
                    and run.start <= at
                    and at + len(text) <= run.end
                ):
                    found[number] = replace(
                        pieces[number], start=run.source_start + at - run.start
                    )
    return found


def _add_pieces(
    builder: JoinedTextBuilder, numbers: Sequence[int], pieces: Mapping[int, Piece]
) -> bool:
    """Add pieces in this order; return False if their offsets contradict each other."""
    agree = True
    for number in numbers:
        text, start = pieces[number].text, pieces[number].start
        gap = None if start is None else builder.gap(start)
        if gap is None:
            shared = overlap(builder.tail(len(text)), text)
            if not shared:
                builder.begin(start)
        else:
            shared = max(0, -gap)
            fits = builder.ends_with(text, shared)
            agree = agree and fits
            if gap > LARGEST_WHITE_GAP or not fits:
                builder.begin(start)
                shared = 0
            elif gap > 0:
                # On a page, the white space may precede a footer, which has to be on a
                # separate line.
                builder.fill(
                    " " if gap == 1 and not pieces[number].page else "\n" * gap
                )
        builder.append(text, number, shared=shared, source_start=start)
    return agree


def in_reading_order(pieces: Mapping[int, Piece]) -> list[int]:
    """The indices of one source's pieces, sorted by ``start``, or by that of the nearest linked piece."""
    order: dict[int, tuple[float, int, int]] = {}
    for chain in _chains(pieces):
        starts = (pieces[number].start for number in chain)
        place: float = next((start for start in starts if start is not None), math.inf)
        for link, number in enumerate(chain):
            start = pieces[number].start
            place = place if start is None else start
            order[number] = (place, min(chain), link)
    return sorted(pieces, key=order.__getitem__)


def _chains(pieces: Mapping[int, Piece]) -> list[list[int]]:
    by_key = {piece.key: number for number, piece in pieces.items()}
    following: dict[int, int] = {}
    for number, piece in pieces.items():
        if piece.next in by_key:
            following.setdefault(number, by_key[piece.next])
        if piece.previous in by_key:
            following.setdefault(by_key[piece.previous], number)
    followers = set(following.values())
    heads = [number for number in pieces if number not in followers]
    chains: list[list[int]] = []
    seen: set[int] = set()
    for head in [
        *heads,
        *pieces,
    ]:  # all of them again, because a circular chain has no head
        chain: list[int] = []
        link: int | None = head
        while link is not None and link not in seen:
            seen.add(link)
            chain.append(link)
            link = following.get(link)
        if chain:
            chains.append(chain)
    return chains


def page_label(metadata: Mapping[str, Any], keys: Sequence[str]) -> object:
    """The page label in metadata: the value of the first key that has one, or None."""
    return next((metadata[key] for key in keys if metadata.get(key) is not None), None)


def page_number(metadata: Mapping[str, Any], keys: Sequence[str]) -> float | None:
    """The page number in metadata: the first value of the keys that is a number or numeric string, or None."""
    for value in map(metadata.get, keys):
        if isinstance(value, str) and _NUMBER.fullmatch(value):
            value = float(value)
        if (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and math.isfinite(value)
        ):
            return float(value)
    return None


class ChunkLocator:
    """Locates the chunks of one source, given in order: near ``start``, or after the previous chunk."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._cursor = 0
        self._last = ""

    def locate(
        self, text: str, start: int | None = None
    ) -> tuple[int, int, bool] | None:
        """The span of a chunk, at ``start`` if it is there, and whether its white space is the same there."""
        if not text.strip():
            return None
        if start is not None and start >= 0 and self.source.startswith(text, start):
            found: tuple[int, int, bool] | None = (start, start + len(text), True)
        else:
            found = self._search(
                text, self._cursor + (text == self._last) if start is None else start
            )
        if found is not None:
            self._cursor, self._last = found[0], text
        return found

    def _search(self, text: str, after: int) -> tuple[int, int, bool] | None:
        squeezed, places = self._squeezed
        wanted = "".join(text.split())
        first = int(np.searchsorted(places, max(after, 0)))
        at = squeezed.find(wanted, first)
        if at < 0:
            at = squeezed.find(wanted, 0, first + len(wanted))
        if at < 0:
            return None
        start, end = int(places[at]), int(places[at + len(wanted) - 1]) + 1
        exact = start - (len(text) - len(text.lstrip()))
        if exact >= 0 and self.source.startswith(text, exact):
            return exact, exact + len(text), True
        return start, end, False

    @cached_property
    def _squeezed(self) -> tuple[str, NDArray[np.int64]]:
        """The source without white space, and the position of each remaining character in it: (characters,)."""
        places = (
            at for at, character in enumerate(self.source) if not character.isspace()
        )
        return "".join(self.source.split()), np.fromiter(places, np.int64)


def share_text(texts: Sequence[str]) -> bool:
    """Whether any text begins with the end of another one, as chunks of one document may."""
    distinct = list(dict.fromkeys(texts))
    return any(
        overlap(distinct[a], distinct[b])
        for a, b in pairwise(order_by_overlap(distinct))
    )


def overlap(before: str, after: str) -> int:
    """Length of the longest end of ``before`` that ``after`` begins with.

    0 if below ``SHORTEST_OVERLAP``.
    """
    probe = after[:SHORTEST_OVERLAP]
    if len(probe) < SHORTEST_OVERLAP:
        return 0
    at = max(0, len(before) - len(after)) - 1
    for _ in range(LARGEST_OVERLAPS_TRIED):
        at = before.find(probe, at + 1)
        if at < 0:
            break
        if after.startswith(before[at:]):
            return len(before) - at
    return 0


def order_by_overlap(texts: Sequence[str], placed: Container[int] = ()) -> list[int]:
    """Indices of the texts, each before the one that begins with most of its end.

    ``placed`` ones order chains.
    """
    if all(overlap(before, after) for before, after in pairwise(texts)):
        return list(range(len(texts)))
    beginnings: dict[str, list[int]] = {}
    for number, text in enumerate(texts):
        if len(text) >= SHORTEST_OVERLAP:
            beginnings.setdefault(text[:SHORTEST_OVERLAP], []).append(number)
    following: dict[int, int] = {}
    begins = dict(
        enumerate(range(len(texts)))
    )  # last text of a chain -> its first text
    ends = dict(begins)  # first text of a chain -> its last text
    for number in range(len(texts)):
        after = _begun_by_the_end(number, texts, beginnings, ends)
        if after is not None:
            first, last = begins.pop(number), ends.pop(after)
            begins[last], ends[first], following[number] = first, last, after
    chains = [[first] for first in ends]
    for chain in chains:
        while chain[-1] in following:
            chain.append(following[chain[-1]])
    chains.sort(
        key=lambda chain: next(
            (number for number in chain if number in placed), chain[0]
        )
    )
    return [number for chain in chains for number in chain]


def _begun_by_the_end(
    number: int,
    texts: Sequence[str],
    beginnings: Mapping[str, Sequence[int]],
    ends: Mapping[int, int],
) -> int | None:
    """The text that begins with the longest end of this one, and that begins another chain than this one ends."""
    text, tried = texts[number], 0
    for start in range(len(text) - SHORTEST_OVERLAP + 1):
        others = beginnings.get(text[start : start + SHORTEST_OVERLAP], ())
        for other in (number + 1, *others) if number + 1 in others else others:
            if ends.get(other, number) == number:
                continue
            if texts[other].startswith(text[start:]):
                return other
            tried += 1
            if tried > LARGEST_OVERLAPS_TRIED:
                return None
    return None
