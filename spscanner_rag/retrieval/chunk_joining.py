"""Joins the chunks of a source whose whole text is unknown."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

from spscanner_rag.retrieval.joined_text import JoinedText
from spscanner_rag.retrieval.joined_text_builder import JoinedTextBuilder
from spscanner_rag.retrieval.overlaps import order_by_overlap, overlap
from spscanner_rag.retrieval.pieces import Piece
from spscanner_rag.retrieval.reading_order import in_reading_order, linked_chains

LARGEST_WHITE_GAP = 8
"""A gap of at most this many characters between two chunks is white space that the
splitter dropped. In a longer gap, text is missing or a paragraph ends."""

LARGEST_SEARCH = 10**10
"""Characters searched for chunks within others; this many take two seconds."""


def add_chunks(
    builder: JoinedTextBuilder, source: Hashable, pieces: Mapping[int, Piece]
) -> None:
    """Add pieces by offsets that agree, and by links and shared text.

    Parameters
    ----------
    builder : JoinedTextBuilder
        Gets the pieces.
    source : hashable
        Their source.
    pieces : mapping
        Pieces by their numbers.
    """
    anchored: dict[int, Piece] = {}
    for number, piece in pieces.items():
        if piece.start is not None:
            anchored[number] = piece
    by_offsets = _joined_by_offsets(source, anchored)
    if by_offsets is None:
        # Chunks of a chunk have offsets in that chunk.
        anchored = _outermost(anchored)
        by_offsets = _joined_by_offsets(source, anchored)
        if by_offsets is None:
            anchored = {}
        pieces = _with_starts_of(anchored, pieces)
    if by_offsets is not None and 0 < len(anchored) < len(pieces):
        pieces = {**pieces, **_located_in(by_offsets.joined(), pieces)}
    _add_pieces(builder, _order_of_chunks(pieces), pieces)


def _joined_by_offsets(
    source: Hashable, anchored: Mapping[int, Piece]
) -> JoinedTextBuilder | None:
    """Pieces with offsets in a builder, or None if these contradict each other."""
    builder = JoinedTextBuilder(source)
    offsets_agree = _add_pieces(builder, in_reading_order(anchored), anchored)
    return builder if offsets_agree else None


def _with_starts_of(
    anchored: Mapping[int, Piece], pieces: Mapping[int, Piece]
) -> dict[int, Piece]:
    """All pieces, of which only the anchored ones have a start."""
    changed = {}
    for number, piece in pieces.items():
        changed[number] = anchored.get(number, replace(piece, start=None))
    return changed


def _order_of_chunks(pieces: Mapping[int, Piece]) -> list[int]:
    """The reading order of pieces, or that by shared text if nothing links them."""
    order = in_reading_order(pieces)
    n_anchored = sum(piece.start is not None for piece in pieces.values())
    linked = any(piece.previous or piece.next for piece in pieces.values())
    if n_anchored == len(order) or linked:
        return order
    texts = [pieces[number].text for number in order]
    by_text = [order[index] for index in order_by_overlap(texts, range(n_anchored))]
    anchored = [number for number in by_text if pieces[number].start is not None]
    return by_text if anchored == order[:n_anchored] else order


def _outermost(pieces: Mapping[int, Piece]) -> dict[int, Piece]:
    """The pieces whose text is in no longer piece.

    None of them if the search would take too long.
    """
    distinct = {piece.text for piece in pieces.values()}
    texts = sorted(distinct, key=len, reverse=True)
    joined = "\0".join(texts)
    if len(texts) * len(joined) > LARGEST_SEARCH:
        return {}
    starts: dict[str, int] = {}
    length = 0
    for text in texts:
        starts[text] = length
        length += len(text) + 1
    outermost = {}
    for number, piece in pieces.items():
        if joined.find(piece.text) == starts[piece.text]:
            outermost[number] = piece
    return outermost


def _located_in(base: JoinedText, pieces: Mapping[int, Piece]) -> dict[int, Piece]:
    """Pieces that occur in the text of those with offsets, with offsets there.

    A piece that is linked to one with an offset is left out.
    """
    located = {}
    for chain in linked_chains(pieces):
        if any(pieces[number].start is not None for number in chain):
            continue
        for number in chain:
            start = _source_start_in(base, pieces[number].text)
            if start is not None:
                located[number] = replace(pieces[number], start=start)
    return located


def _source_start_in(base: JoinedText, text: str) -> int | None:
    """Where a text begins in the source, if one run of ``base`` contains it."""
    start = base.text.find(text)
    if start < 0:
        return None
    end = start + len(text)
    source_start = None
    for run in base.runs_of(start, end):
        if run.source_start is not None and run.start <= start and end <= run.end:
            source_start = run.source_start + start - run.start
    return source_start


def _add_pieces(
    builder: JoinedTextBuilder, numbers: Sequence[int], pieces: Mapping[int, Piece]
) -> bool:
    """Add pieces in this order.

    Returns False if their offsets contradict each other.
    """
    offsets_agree = True
    for number in numbers:
        piece = pieces[number]
        gap = None
        if piece.start is not None:
            gap = builder.gap(piece.start)
        if gap is None:
            shared = overlap(builder.tail(len(piece.text)), piece.text)
            if not shared:
                builder.begin(piece.start)
        else:
            shared = max(0, -gap)
            fits = builder.ends_with(piece.text, shared)
            offsets_agree = offsets_agree and fits
            if gap > LARGEST_WHITE_GAP or not fits:
                builder.begin(piece.start)
                shared = 0
            elif gap > 0:
                builder.fill(_white_space(gap, piece))
        builder.append(piece.text, number, shared=shared, source_start=piece.start)
    return offsets_agree


def _white_space(gap: int, piece: Piece) -> str:
    """White space for the gap before a piece.

    On a page it may precede a footer, which has to be on a separate line.
    """
    return " " if gap == 1 and not piece.page else "\n" * gap
