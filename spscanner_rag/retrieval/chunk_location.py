"""Find a chunk in the text it was cut from, and order chunks without a place by the text that they share."""

from collections.abc import Container, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SHORTEST_OVERLAP = 16  # minimum overlap of two chunks, in characters; a shorter one may be coincidence
LARGEST_OVERLAPS_TRIED = 256
"""Limit for chunks that repeat one line over and over; their overlap may be missed."""


class Location(NamedTuple):
    """A span of the source; not ``exact`` if its white space differs from the chunk's."""

    start: int
    end: int
    exact: bool


class ChunkLocator:
    """Locates the chunks of one source, given in order: near ``start``, or after the chunk before."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._cursor = 0
        self._last = ""

    def locate(self, text: str, start: int | None = None) -> Location | None:
        """The span of a chunk, at ``start`` if it occurs there. Splitters may change white space."""
        if not text.strip():
            return None
        if start is not None and start >= 0 and self.source.startswith(text, start):
            found: Location | None = Location(start, start + len(text), True)
        else:
            found = self._search(text, self._cursor + (text == self._last) if start is None else start)
        if found is not None:
            self._cursor, self._last = found.start, text
        return found

    def _search(self, text: str, after: int) -> Location | None:
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
            return Location(exact, exact + len(text), True)
        return Location(start, end, False)

    @cached_property
    def _squeezed(self) -> tuple[str, NDArray[np.int64]]:
        """The source without white space, and the position of each remaining character in it: (characters,)."""
        places = (at for at, character in enumerate(self.source) if not character.isspace())
        return "".join(self.source.split()), np.fromiter(places, np.int64)


def share_text(texts: Sequence[str]) -> bool:
    """Whether a text begins with the end of another one, as chunks of one document may."""
    distinct = list(dict.fromkeys(texts))
    return any(overlap(distinct[a], distinct[b]) for a, b in pairwise(order_by_overlap(distinct)))


def overlap(before: str, after: str) -> int:
    """Length of the longest end of ``before`` that ``after`` begins with; 0 if below ``SHORTEST_OVERLAP``."""
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
    """Indices of the texts, each directly followed by the one that begins with its end, if there is one.

    The longest overlap counts, then the order given; chains are ordered by their first member that is ``placed``.
    """
    if all(overlap(before, after) for before, after in pairwise(texts)):
        return list(range(len(texts)))
    beginnings: dict[str, list[int]] = {}
    for number, text in enumerate(texts):
        if len(text) >= SHORTEST_OVERLAP:
            beginnings.setdefault(text[:SHORTEST_OVERLAP], []).append(number)
    following: dict[int, int] = {}
    begins = dict(enumerate(range(len(texts))))  # of each chain, by the text that it ends with
    ends = dict(begins)  # by the text that it begins with
    for number in range(len(texts)):
        after = _begun_by_the_end(number, texts, beginnings, ends)
        if after is not None:
            first, last = begins.pop(number), ends.pop(after)
            begins[last], ends[first], following[number] = first, last, after
    chains = [[first] for first in ends]
    for chain in chains:
        while chain[-1] in following:
            chain.append(following[chain[-1]])
    chains.sort(key=lambda chain: next((number for number in chain if number in placed), chain[0]))
    return [number for chain in chains for number in chain]


def _begun_by_the_end(
    number: int, texts: Sequence[str], beginnings: Mapping[str, Sequence[int]], ends: Mapping[int, int]
) -> int | None:
    """The text that begins with the longest end of this one, and another chain than that which this one ends."""
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
