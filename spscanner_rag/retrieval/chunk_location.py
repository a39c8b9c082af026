"""Where a chunk stands in the text it was cut from, and what two neighbouring chunks share."""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SHORTEST_OVERLAP = 16
"""Characters that the end of one chunk and the beginning of the next share at least; fewer may be chance."""

NEARBY = 1024
"""Characters, besides a few times the chunk's length, in which a chunk is looked for first. Only a chunk that does
not stand there costs a look at the whole source."""

LARGEST_OVERLAPS_TRIED = 256
"""Places tried in two chunks that repeat one line over and over; their overlap may then go unseen."""

_IS_SPACE = np.array([chr(code).isspace() for code in range(0x3002)])  # no white space has a higher code


class Location(NamedTuple):
    """A span of the source; ``exact`` unless the chunk differs from it in white space."""

    start: int
    end: int
    exact: bool


class ChunkLocator:
    """Locates the chunks of one source, given in reading order.

    A chunk that stands several times in the source is located near ``start``, else behind the chunk before it.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self._cursor = 0
        self._last = ""

    def locate(self, text: str, start: int | None = None) -> Location | None:
        """Where a chunk stands, at ``start`` if it stands there; splitters may have changed its white space."""
        if not text.strip():
            return None
        if start is not None and start >= 0 and self.source.startswith(text, start):
            found: Location | None = Location(start, start + len(text), True)
        else:
            found = self._search(text, self._cursor + (text == self._last) if start is None else start)
        if found is not None:
            self._cursor, self._last = found.start, text
        return found

    def _search(self, text: str, behind: int) -> Location | None:
        behind = max(behind, 0)
        near = behind + 4 * len(text) + NEARBY
        squeezed = "".join(text.split())
        return (
            self._exact(text, behind, near)
            or self._but_for_white_space(squeezed, behind, near)
            or self._exact(text, behind)
            or self._exact(text, 0, behind + len(text))
            or self._but_for_white_space(squeezed, behind)
            or self._but_for_white_space(squeezed)
        )

    def _exact(self, text: str, start: int, stop: int | None = None) -> Location | None:
        at = self.source.find(text, start, stop)
        return None if at < 0 else Location(at, at + len(text), True)

    def _but_for_white_space(self, wanted: str, start: int = 0, stop: int | None = None) -> Location | None:
        squeezed, places = self._squeezed
        first = int(np.searchsorted(places, start))
        last = len(places) if stop is None else int(np.searchsorted(places, stop))
        at = squeezed.find(wanted, first, last)
        if at < 0:
            return None
        return Location(int(places[at]), int(places[at + len(wanted) - 1]) + 1, False)

    @cached_property
    def _squeezed(self) -> tuple[str, NDArray[np.int64]]:
        """The source without white space, and where each of its characters stands: (characters,)."""
        codes = np.frombuffer(self.source.encode("utf-32-le", "surrogatepass"), np.uint32)
        return "".join(self.source.split()), np.flatnonzero(~_IS_SPACE[np.minimum(codes, len(_IS_SPACE) - 1)])


def overlap(before: str, after: str) -> int:
    """How many characters at the end of one chunk begin the next; 0 if fewer than ``SHORTEST_OVERLAP``."""
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
