"""Find a chunk in the text it was cut from, and order chunks without a place by the text that they share."""

from collections.abc import Container, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SHORTEST_OVERLAP = 16  # minimum overlap of two chunks, in characters; a shorter one may be coincidence
NEARBY = 1024
"""A chunk is first searched for in this many characters plus four times its length. The whole source is searched
only if it is not found there."""

GRAM = 8
"""Characters of the substrings by which many texts are searched for in one another; a text of less than twice as
many is looked for in each."""

LARGEST_OVERLAPS_TRIED = 256
"""Limit for chunks that repeat one line over and over; their overlap may be missed."""

# No white space has a higher code point.
_IS_SPACE = np.array([chr(code).isspace() for code in range(0x3002)])


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
        after = max(after, 0)
        near = after + 4 * len(text) + NEARBY
        squeezed = "".join(text.split())
        nearby = self._exact(text, after, near) or self._ignoring_white_space(squeezed, after, near)
        if nearby or squeezed not in self._squeezed[0]:
            return nearby
        return (
            self._exact(text, after)
            or self._exact(text, 0, after + len(text))
            or self._ignoring_white_space(squeezed, after)
            or self._ignoring_white_space(squeezed)
        )

    def _exact(self, text: str, start: int, stop: int | None = None) -> Location | None:
        at = self.source.find(text, start, stop)
        return None if at < 0 else Location(at, at + len(text), True)

    def _ignoring_white_space(self, wanted: str, start: int = 0, stop: int | None = None) -> Location | None:
        squeezed, places = self._squeezed
        first = int(np.searchsorted(places, start))
        last = len(places) if stop is None else int(np.searchsorted(places, stop))
        at = squeezed.find(wanted, first, last)
        if at < 0:
            return None
        return Location(int(places[at]), int(places[at + len(wanted) - 1]) + 1, False)

    @cached_property
    def _squeezed(self) -> tuple[str, NDArray[np.int64]]:
        """The source without white space, and the position of each remaining character in it: (characters,)."""
        codes = np.frombuffer(self.source.encode("utf-32-le", "surrogatepass"), np.uint32)
        return "".join(self.source.split()), np.flatnonzero(~_IS_SPACE[np.minimum(codes, len(_IS_SPACE) - 1)])


class TextIndex:
    """Finds which of many texts contain a text, whatever the white space of both."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = ["".join(text.split()) for text in texts]  # without white space
        self._grams: dict[str, list[tuple[int, int]]] = {}
        self._short_texts_left = LARGEST_OVERLAPS_TRIED  # each costs a look at all texts
        for number, text in enumerate(self.texts):
            for at in range(0, len(text) - GRAM + 1, GRAM):
                self._grams.setdefault(text[at : at + GRAM], []).append((number, at))

    def holders(self, text: str) -> Iterator[int]:
        """Indices of texts that contain a text; some may be missing after ``LARGEST_OVERLAPS_TRIED`` tries."""
        wanted = "".join(text.split())
        if len(wanted) < 2 * GRAM - 1:
            self._short_texts_left -= 1
            if wanted and self._short_texts_left >= 0:
                yield from (number for number, own in enumerate(self.texts) if wanted in own)
            return
        tried = 0
        for first in range(GRAM):
            shifts = range(first, len(wanted) - GRAM + 1, GRAM)
            found = [(self._grams.get(wanted[shift : shift + GRAM], []), shift) for shift in shifts]
            rarest, shift = min(found, key=lambda pair: len(pair[0]))
            for number, at in rarest:
                if at >= shift and self.texts[number].startswith(wanted, at - shift):
                    yield number
                tried += 1
                if tried > LARGEST_OVERLAPS_TRIED:
                    return


def share_text(texts: Sequence[str]) -> bool:
    """Whether a text begins with the end of another one, or is a part of it, as chunks of one document may."""
    distinct = list(dict.fromkeys(texts))
    if any(overlap(distinct[a], distinct[b]) for a, b in pairwise(order_by_overlap(distinct))):
        return True
    index = TextIndex(distinct)
    long = ((number, text) for number, text in enumerate(distinct) if len(text) >= 2 * SHORTEST_OVERLAP)
    return any(holder != number for number, text in long for holder in index.holders(text))


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
    for start in range(1, len(text) - SHORTEST_OVERLAP + 1):
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
