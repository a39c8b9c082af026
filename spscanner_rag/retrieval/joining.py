"""Joins the pieces of documents into texts that a scorer can read.

Text that chunks share is included once, and white space that a splitter dropped is
replaced by as many characters. Where text is missing, or a page or document ends, a new
*run* begins. No sentence extends over two runs unless they are consecutive pages
(`joined_sources.join_sources`).
"""

from collections.abc import Hashable, Mapping, Sequence

from spscanner_rag.retrieval.chunk_joining import add_chunks
from spscanner_rag.retrieval.chunk_location import ChunkLocator
from spscanner_rag.retrieval.joined_sources import SourceText, join_sources
from spscanner_rag.retrieval.joined_text import JoinedText, Placed
from spscanner_rag.retrieval.joined_text_builder import JoinedTextBuilder
from spscanner_rag.retrieval.pieces import Piece
from spscanner_rag.retrieval.reading_order import in_reading_order

NumbersOfSource = dict[Hashable, list[int]]
"""Indices of pieces, by their source."""


def join_pieces(
    pieces: Sequence[Piece], sources: Mapping[Hashable, str] | None = None
) -> list[JoinedText]:
    """Join pieces, group by group, in the order in which the groups first appear.

    Pieces of one source are ordered by ``start`` if it is known, else by their links,
    else so that a piece follows the one whose end it begins with, else as they come. A
    piece without a start is placed where its text occurs in pieces with one. If starts
    contradict each other, those of pieces within larger ones are ignored, or else all.

    Parameters
    ----------
    pieces : sequence of Piece
        The pieces of all documents.
    sources : mapping, optional
        Whole texts of sources. Such a source is read whole, and every span in it is
        exact.

    Examples
    --------
    >>> chunks = [
    ...     Piece(text="The well was dry. They", key="1", source="a.txt", start=0),
    ...     Piece(text="They left the island.", key="2", source="a.txt", start=18),
    ... ]
    >>> [joined.text for joined in join_pieces(chunks)]
    ['The well was dry. They left the island.']
    """
    groups: dict[Hashable, NumbersOfSource] = {}
    for number, piece in enumerate(pieces):
        group = ("group", piece.group)
        if piece.group is None:
            group = ("source", piece.source)
        numbers_of_source = groups.setdefault(group, {})
        numbers_of_source.setdefault(piece.source, []).append(number)
    return [_join_group(pieces, group, sources or {}) for group in groups.values()]


def _join_group(
    pieces: Sequence[Piece], group: NumbersOfSource, sources: Mapping[Hashable, str]
) -> JoinedText:
    """Join the sources of a group, by position if all have one."""
    positions: dict[Hashable, float] = {}
    only_pages = len(group) > 1
    for source, numbers in group.items():
        position = pieces[numbers[0]].position
        if position is not None:
            positions[source] = position
        only_pages = only_pages and all(pieces[number].page for number in numbers)
    ordered = list(group)
    if len(positions) == len(group):
        ordered.sort(key=positions.__getitem__)
    source_texts = []
    for source in ordered:
        text = sources.get(source)
        joined = _join_source(pieces, source, group[source], text)
        is_page = only_pages and _is_complete(joined, pieces, text is not None)
        source_texts.append(SourceText(joined, positions.get(source), is_page))
    return join_sources(source_texts)


def _is_complete(joined: JoinedText, pieces: Sequence[Piece], is_source: bool) -> bool:
    """Whether a text is all of its source, as one run."""
    if len(joined.runs) != 1 or joined.runs[0].source_start != 0:
        return False
    ends = [placed.end for placed in joined.placed if pieces[placed.number].last]
    return is_source or max(ends, default=0) == len(joined.text)


def _join_source(
    pieces: Sequence[Piece], source: Hashable, numbers: Sequence[int], text: str | None
) -> JoinedText:
    """Read one source: its whole text if that is known, else its pieces joined."""
    pieces_of_source: dict[int, Piece] = {}
    for number in numbers:
        if pieces[number].text.strip() or pieces[number].start is not None:
            pieces_of_source[number] = pieces[number]
    builder = JoinedTextBuilder(source)
    if text is None:
        add_chunks(builder, source, pieces_of_source)
    else:
        builder.begin(0)
        builder.fill(text)
        _place_chunks(builder, text, pieces_of_source)
    return builder.joined()


def _place_chunks(
    builder: JoinedTextBuilder, text: str, pieces: Mapping[int, Piece]
) -> None:
    """Place pieces in the whole text of their source, and append those not in it."""
    locator = ChunkLocator(text)
    missing: list[int] = []
    for number in in_reading_order(pieces):
        location = locator.locate(pieces[number].text, pieces[number].start)
        if location is not None:
            span = (location.start, location.end)
            builder.place(Placed(*span, number, location.exact))
        elif pieces[number].text.strip():
            missing.append(number)
    for number in missing:
        builder.begin(None)
        builder.append(pieces[number].text, number)
