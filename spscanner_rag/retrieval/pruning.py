"""Return pieces instead of sentences: those that selected sentences stand in, whole or cut down to them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast, get_args

from spscanner_rag.retrieval.joined_text import JoinedText, Placed
from spscanner_rag.retrieval.search import Hit

ReturnNodes = Literal["sentence", "node", "pruned"]
"""What a framework class returns: sentences, the pieces that they stand in, or these cut down to them."""

GAP = "\n"
"""Stands for the text left out between two kept sentences, as in the paper's contexts."""

Span = tuple[int, int]


def check_return_nodes(value: object) -> ReturnNodes:
    """Return the value; raise ``ValueError`` for anything but the three names."""
    if value not in get_args(ReturnNodes):
        raise ValueError(f"return_nodes: got {value!r}; expected one of {', '.join(get_args(ReturnNodes))}")
    return cast("ReturnNodes", value)


@dataclass
class KeptPiece:
    """A piece in which selected sentences stand.

    Attributes
    ----------
    joined
        Index of the text that contains it.
    piece
        Index of the piece, in the order given.
    best
        Its best sentence.
    spans
        The spans of the joined text that it is cut down to, in order.
    """

    joined: int
    piece: int
    best: Hit
    spans: list[Span] = field(default_factory=list)


def kept_pieces(texts: Sequence[JoinedText], hits: Sequence[Hit]) -> list[KeptPiece]:
    """The pieces that the hits stand in, in the order of their first hit.

    A sentence counts for every piece that contains it (of a document and a chunk of it, for the chunk), or, if it
    runs over several, for each of these. Pieces are cut down so that no text is kept twice: what two pieces share
    is kept in the first one.
    """
    kept: dict[tuple[int, int], KeptPiece] = {}
    for hit in hits:
        for number, span in _owners(texts[hit.joined], hit.start, hit.end):
            piece = kept.setdefault((hit.joined, number), KeptPiece(hit.joined, number, hit))
            if piece.best.logit < hit.logit:
                piece.best = hit
            if span is not None:
                piece.spans.append(span)
    for piece in kept.values():
        piece.spans.sort()
    return list(kept.values())


def _owners(joined: JoinedText, start: int, end: int) -> Iterator[tuple[int, Span | None]]:
    """The pieces of a span, and the part of it that each keeps."""
    touching = list(joined.touching(start, end))
    holders = _smallest([placed for placed in touching if placed.holds(start, end)])
    if holders:
        yield holders[0].number, (start, end)
        yield from ((placed.number, None) for placed in holders[1:])
        return
    for placed in touching:
        part = max(start, placed.start), min(end, placed.end)
        if part[0] < part[1] and joined.text[slice(*part)].strip():
            yield placed.number, part
            start = part[1]


def _smallest(placed: Sequence[Placed]) -> list[Placed]:
    """Those that contain no other one; of equal ones the first."""
    found: list[Placed] = []
    for one in sorted(placed, key=lambda p: (p.end - p.start, p.number)):
        if not any(one.holds(other.start, other.end) for other in found):
            found.append(one)
    return sorted(found)


def pruned_text(text: str, joined: JoinedText, kept: KeptPiece) -> str:
    """A piece's text cut down to what is kept of it.

    Sentences with nothing but white space between them are neighbours, and keep it; other gaps become ``GAP``.
    Every part stands in ``text`` as it is.
    """
    placed = next(p for p in joined.placed if p.number == kept.piece)
    pruned, end_before = "", 0
    for span in kept.spans:
        start, end = _in_piece(text, joined.text, placed, *span)
        if pruned:
            between = text[end_before:start]
            pruned += GAP if between.strip() else between
        pruned += text[start:end]
        end_before = end
    return pruned


def reduction(count: Callable[[str], int], text: str, pruned: str) -> float:
    """The share of a text that pruning saves, from 0 to 1, in what ``count`` counts."""
    whole = count(text)
    return max(0.0, 1 - count(pruned) / whole) if whole else 0.0


def _in_piece(text: str, joined: str, placed: Placed, start: int, end: int) -> Span:
    """A span of the joined text in the text of the piece."""
    if placed.exact:
        shift = placed.offset - placed.start
        return start + shift, end + shift
    # Their white space differs: the other characters are counted.
    before = placed.offset + len("".join(joined[placed.start : start].split()))
    inside = len("".join(joined[start:end].split()))
    places = [number for number, character in enumerate(text) if not character.isspace()]
    return places[before], places[before + inside - 1] + 1
