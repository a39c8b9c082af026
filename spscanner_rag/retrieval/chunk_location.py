"""Where a chunk stands in the text it was cut from, and what two neighbouring chunks share."""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SHORTEST_OVERLAP = 16
"""Fewer characters at the end of one chunk and the beginning of the next may be equal by chance."""

NEARBY = 1024
"""A chunk is first looked for within this many characters, and a few times its length, so that many are cheap;
only what does not stand there costs a look at the whole source."""

LARGEST_OVERLAPS_TRIED = 256
"""Of two chunks that repeat one line over and over; what they share may go unseen then."""

_IS_SPACE = np.array([chr(code).isspace() for code in range(0x3002)])  # no white space has a higher code


class Found(NamedTuple):
    """A span of the source; ``exact`` if the chunk is that span, and not the same but for white space."""

    start: int
    end: int
    exact: bool


class SourceSearch:
    """Finds the chunks of one source, which are asked for in reading order.

    A chunk that stands several times in the source is found near ``start``, else behind the chunk before it.

    Parameters
    ----------
    source
        The whole text.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self._cursor = 0
        self._last = ""

    def find(self, text: str, start: int | None = None) -> Found | None:
        """The place of a chunk, at ``start`` if it stands there, or None.

        White space may differ: splitters strip and normalize it.
        """
        if not text.strip():
            return None
        if start is not None and start >= 0 and self.source.startswith(text, start):
            found: Found | None = Found(start, start + len(text), True)
        else:
            found = self._search(text, self._cursor + (text == self._last) if start is None else start)
        if found is not None:
            self._cursor, self._last = found.start, text
        return found

    def _search(self, text: str, behind: int) -> Found | None:
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

    def _exact(self, text: str, start: int, stop: int | None = None) -> Found | None:
        at = self.source.find(text, start, stop)
        return None if at < 0 else Found(at, at + len(text), True)

    def _but_for_white_space(self, wanted: str, start: int = 0, stop: int | None = None) -> Found | None:
        squeezed, places = self._squeezed
        first = int(np.searchsorted(places, start))
        last = len(places) if stop is None else int(np.searchsorted(places, stop))
        at = squeezed.find(wanted, first, last)
        if at < 0:
            return None
        return Found(int(places[at]), int(places[at + len(wanted) - 1]) + 1, False)

    @cached_property
    def _squeezed(self) -> tuple[str, NDArray[np.int64]]:
        """The source without white space, and where each of its characters stands: (characters,)."""
        codes = np.frombuffer(self.source.encode("utf-32-le", "surrogatepass"), np.uint32)
        return "".join(self.source.split()), np.flatnonzero(~_IS_SPACE[np.minimum(codes, len(_IS_SPACE) - 1)])


def overlap(before: str, after: str) -> int:
    """How many characters at the end of one chunk begin the next; 0 if they are fewer than the shortest."""
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
