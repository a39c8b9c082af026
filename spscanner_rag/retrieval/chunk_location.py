"""Finds the chunks of a source in its whole text."""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class ChunkLocation(NamedTuple):
    """The span of a chunk in its source."""

    start: int
    end: int
    exact: bool  # whether the white space there is the chunk's


class ChunkLocator:
    """Locates the chunks of one source, one after the other.

    Parameters
    ----------
    source : str
        The whole text of the source.

    Examples
    --------
    >>> locator = ChunkLocator("The well was dry. They left.")
    >>> locator.locate("They left.")
    ChunkLocation(start=18, end=28, exact=True)
    >>> locator.locate("The  well")
    ChunkLocation(start=0, end=8, exact=False)
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self._last_start = 0
        self._last_text = ""

    def locate(self, text: str, start: int | None = None) -> ChunkLocation | None:
        """Find a chunk at ``start``, or near it, or after the previous chunk."""
        if not text.strip():
            return None
        location: ChunkLocation | None
        if start is None:
            # The same text again is another chunk.
            after = self._last_start + (text == self._last_text)
            location = self._search(text, after)
        elif start >= 0 and self.source.startswith(text, start):
            location = ChunkLocation(start, start + len(text), exact=True)
        else:
            location = self._search(text, start)
        if location is not None:
            self._last_start = location.start
            self._last_text = text
        return location

    def _search(self, text: str, after: int) -> ChunkLocation | None:
        """Find a text, whatever its white space, after a place, or else before it."""
        characters, visible_places = self._visible
        wanted = "".join(text.split())
        first = int(np.searchsorted(visible_places, max(after, 0)))
        index = characters.find(wanted, first)
        if index < 0:
            index = characters.find(wanted, 0, first + len(wanted))
        if index < 0:
            return None
        start = int(visible_places[index])
        end = int(visible_places[index + len(wanted) - 1]) + 1
        exact_start = start - (len(text) - len(text.lstrip()))
        if exact_start >= 0 and self.source.startswith(text, exact_start):
            return ChunkLocation(exact_start, exact_start + len(text), exact=True)
        return ChunkLocation(start, end, exact=False)

    @cached_property
    def _visible(self) -> tuple[str, NDArray[np.int64]]:
        """The source without white space, and the place of each character in it."""
        visible_places = [
            place
            for place, character in enumerate(self.source)
            if not character.isspace()
        ]
        return "".join(self.source.split()), np.array(visible_places, np.int64)
