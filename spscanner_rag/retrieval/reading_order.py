"""The order in which the pieces of one source stand in it."""

import math
from collections.abc import Sequence
from typing import Protocol


class Linked(Protocol):
    """What is known of a piece's place: its offset, or its neighbours."""

    @property
    def key(self) -> str: ...  # noqa: D102
    @property
    def start(self) -> int | None: ...  # noqa: D102
    @property
    def previous(self) -> str | None: ...  # noqa: D102
    @property
    def next(self) -> str | None: ...  # noqa: D102


def in_reading_order(numbers: Sequence[int], pieces: Sequence[Linked]) -> list[int]:
    """Numbers of pieces of one source, in reading order.

    By ``start``. A piece without one follows the nearest piece before it that is linked to it and has one, else
    stands ahead of the nearest one behind it; what is linked to none with a ``start`` comes last, as linked,
    else in the order given.
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


def _chains(numbers: Sequence[int], pieces: Sequence[Linked]) -> list[list[int]]:
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
    for head in [*heads, *numbers]:  # the second time for links that go in a circle
        chain: list[int] = []
        link: int | None = head
        while link is not None and link not in seen:
            seen.add(link)
            chain.append(link)
            link = following.get(link)
        if chain:
            chains.append(chain)
    return chains
