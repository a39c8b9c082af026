"""The pieces that contain selected sentences."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from spscanner_rag.retrieval.hits import Hit
from spscanner_rag.retrieval.joined_text import JoinedText, Placed

Span = tuple[int, int]


@dataclass
class SelectedPiece:
    """A piece that contains selected sentences.

    Attributes
    ----------
    text_number : int
        Index of the text that contains it.
    piece_number : int
        Its index among the pieces that were joined.
    best : Hit
        Its best sentence.
    spans : list of tuple
        What pruning leaves of it, as spans of the joined text, in order.
    """

    text_number: int
    piece_number: int
    best: Hit
    spans: list[Span] = field(default_factory=list)


def pieces_of_hits(
    texts: Sequence[JoinedText], hits: Sequence[Hit]
) -> list[SelectedPiece]:
    """The smallest pieces that contain the hits, or all that they overlap.

    They stand in the order of their first hits. A stretch of text is in the spans of
    one piece only.
    """
    selected: dict[tuple[int, int], SelectedPiece] = {}
    for hit in hits:
        for number, span in _pieces_of_span(texts[hit.text_number], hit.start, hit.end):
            new = SelectedPiece(hit.text_number, number, hit)
            piece = selected.setdefault((hit.text_number, number), new)
            if piece.best.logit < hit.logit:
                piece.best = hit
            if span is not None:
                piece.spans.append(span)
    for piece in selected.values():
        piece.spans.sort()
    return list(selected.values())


def _pieces_of_span(
    joined: JoinedText, start: int, end: int
) -> Iterator[tuple[int, Span | None]]:
    """The pieces of a span, each with the part of the span that it keeps, or None."""
    touching = list(joined.touching(start, end))
    holders = _smallest_holders(touching, start, end)
    if holders:
        yield holders[0].number, (start, end)
        for placed in holders[1:]:
            yield placed.number, None
        return
    for placed in touching:
        first = max(start, placed.start)
        last = min(end, placed.end)
        if first < last and joined.text[first:last].strip():
            yield placed.number, (first, last)
            start = last


def _smallest_holders(touching: Sequence[Placed], start: int, end: int) -> list[Placed]:
    """Pieces with the whole span, except those that contain another such piece."""
    holders: list[Placed] = []
    for placed in sorted(touching, key=_length_and_number):
        contains_another = any(
            placed.holds(holder.start, holder.end) for holder in holders
        )
        if placed.holds(start, end) and not contains_another:
            holders.append(placed)
    return sorted(holders)


def _length_and_number(placed: Placed) -> tuple[int, int]:
    return placed.end - placed.start, placed.number
