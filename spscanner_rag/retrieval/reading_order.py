"""The order of a source's pieces, by their offsets and links."""

import math
from collections.abc import Mapping

from spscanner_rag.retrieval.pieces import Piece


def in_reading_order(pieces: Mapping[int, Piece]) -> list[int]:
    """The numbers of a source's pieces, sorted by ``start``.

    A piece without one has that of the nearest linked piece.
    """
    order: dict[int, tuple[float, int, int]] = {}
    for chain in linked_chains(pieces):
        start: float = math.inf
        for number in reversed(chain):
            start_of_piece = pieces[number].start
            if start_of_piece is not None:
                start = start_of_piece
        for link, number in enumerate(chain):
            start_of_piece = pieces[number].start
            if start_of_piece is not None:
                start = start_of_piece
            order[number] = (start, min(chain), link)
    return sorted(pieces, key=order.__getitem__)


def linked_chains(pieces: Mapping[int, Piece]) -> list[list[int]]:
    """The numbers of pieces that are linked, chain by chain, each in its order."""
    following = _following(pieces)
    followers = set(following.values())
    heads = [number for number in pieces if number not in followers]
    chains: list[list[int]] = []
    seen: set[int] = set()
    # All pieces again after the heads, because a circular chain has no head.
    for head in [*heads, *pieces]:
        chain: list[int] = []
        number: int | None = head
        while number is not None and number not in seen:
            seen.add(number)
            chain.append(number)
            number = following.get(number)
        if chain:
            chains.append(chain)
    return chains


def _following(pieces: Mapping[int, Piece]) -> dict[int, int]:
    """For each linked piece, the piece after it."""
    numbers = {piece.key: number for number, piece in pieces.items()}
    following: dict[int, int] = {}
    for number, piece in pieces.items():
        if piece.next in numbers:
            following.setdefault(number, numbers[piece.next])
        if piece.previous in numbers:
            following.setdefault(numbers[piece.previous], number)
    return following
