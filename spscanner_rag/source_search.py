"""Where a chunk stands in the text it was cut from, and what two neighbouring chunks share."""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SHORTEST_OVERLAP = 16
"""Fewer characters at the end of one chunk and the beginning of the next may be equal by chance."""


class Found(NamedTuple):
    """A span of the source; ``exact`` if the chunk is that span, and not the same but for white space."""

    start: int
    end: int
    exact: bool


class SourceSearch:
    """Finds the chunks of one source, which are asked for in reading order.

    A chunk that stands several times in the source is found behind the beginning of the chunk before it.

    Parameters
    ----------
    source
        The whole text.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self._cursor = 0

    def find(self, text: str, start: int | None = None) -> Found | None:
        """The place of a chunk, at ``start`` if it stands there, or None.

        White space may differ: splitters strip and normalize it.
        """
        if not text.strip():
            return None
        found = self._exact(text, start) or self._but_for_white_space(text)
        if found is not None:
            self._cursor = found.start + 1
        return found

    def _exact(self, text: str, start: int | None) -> Found | None:
        if start is None or start < 0 or not self.source.startswith(text, start):
            start = self.source.find(text, self._cursor)
            if start < 0:
                start = self.source.find(text)
        return None if start < 0 else Found(start, start + len(text), True)

    def _but_for_white_space(self, text: str) -> Found | None:
        squeezed, places = self._squeezed
        wanted = "".join(text.split())
        at = squeezed.find(wanted, int(np.searchsorted(places, self._cursor)))
        if at < 0:
            at = squeezed.find(wanted)
        if at < 0:
            return None
        return Found(int(places[at]), int(places[at + len(wanted) - 1]) + 1, False)

    @cached_property
    def _squeezed(self) -> tuple[str, NDArray[np.int64]]:
        """The source without white space, and where each of its characters stands: (characters,)."""
        places = [place for place, character in enumerate(self.source) if not character.isspace()]
        return "".join(self.source.split()), np.array(places, np.int64)


def overlap(before: str, after: str) -> int:
    """How many characters at the end of one chunk begin the next; 0 if they are fewer than the shortest."""
    probe = after[:SHORTEST_OVERLAP]
    if len(probe) < SHORTEST_OVERLAP:
        return 0
    at = before.find(probe, max(0, len(before) - len(after)))
    while at >= 0:
        if after.startswith(before[at:]):
            return len(before) - at
        at = before.find(probe, at + 1)
    return 0
