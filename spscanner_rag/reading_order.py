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

    By ``start`` if all know it. Else pieces that are linked follow one another, and what belongs together
    stands where its first known ``start`` says, or, if it has none, behind the others in the order given.
    """
    if all(pieces[number].start is not None for number in numbers):
        return sorted(numbers, key=lambda number: pieces[number].start or 0)
    chains = _chains(numbers, pieces)
    return [number for chain in sorted(chains, key=lambda c: _chain_place(c, pieces)) for number in chain]


def _chain_place(chain: Sequence[int], pieces: Sequence[Linked]) -> tuple[float, int]:
    starts = [start for number in chain if (start := pieces[number].start) is not None]
    return min(starts, default=math.inf), min(chain)


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
