"""Where in a document the two parts of a link lie."""

import random
from dataclasses import dataclass

from spscanner_lab.synthesis.conversation import DroppedError
from spscanner_lab.synthesis.settings import SynthesisSettings

Span = tuple[int, int]
THIRDS = {
    "start": (0.0, 1 / 3),
    "middle": (1 / 3, 2 / 3),
    "end": (2 / 3, 1.0),
    "anywhere": (0.0, 1.0),
}


@dataclass(frozen=True, slots=True)
class LinkLayout:
    """The units of a chunk and of its window, and where a linked unit may be.

    Attributes
    ----------
    chunk, window : tuple of int
        First unit, and the one after the last.
    linked_share : tuple of float
        The part of the text, from 0 to 1, that a linked unit lies in.
    """

    chunk: Span
    window: Span
    linked_share: tuple[float, float]

    @property
    def shown(self) -> list[int]:
        """The units of the window without the chunk."""
        first, end = self.chunk
        return [unit for unit in range(*self.window) if not first <= unit < end]

    def distance(self, unit: int) -> int:
        """Return how many units a linked unit is away from the chunk's nearest unit.

        1 for a neighbour.
        """
        first, end = self.chunk
        if unit < first:
            return first - unit
        return unit - end + 1


def window_of(
    chunk: Span,
    unit_count: int,
    window_units: int,
    margin: int,
    random_source: random.Random,
) -> Span:
    """Return a window around a chunk: the longer of two, both within the document.

    One begins and one ends ``margin`` units from the chunk. For a chunk of 5 units at
    ``i``, a window of 200 and a margin of 10 they are [i - 10, i + 190) and
    [i - 185, i + 15). If both have the same length, one is drawn.

    Examples
    --------
    >>> import random
    >>> from spscanner_lab.synthesis.layout import window_of
    >>> window_of((20, 25), 1000, 200, 10, random.Random(0))
    (10, 210)
    """
    start, end = chunk
    from_chunk = (
        max(0, start - margin),
        min(unit_count, start - margin + window_units),
    )
    to_chunk = (max(0, end + margin - window_units), min(unit_count, end + margin))
    length_from = from_chunk[1] - from_chunk[0]
    length_to = to_chunk[1] - to_chunk[0]
    if length_from == length_to:
        return random_source.choice((from_chunk, to_chunk))
    return from_chunk if length_from > length_to else to_chunk


def layout_of(
    unit_count: int,
    settings: SynthesisSettings,
    number: int,
    random_source: random.Random,
) -> LinkLayout:
    """Draw a chunk with its window.

    ``number`` selects the wanted positions in turn.
    """
    size = settings.chunk_units
    if unit_count < size + settings.closest_link + 1:
        raise DroppedError("too few units for a link")
    positions = settings.positions or (("anywhere", "anywhere"),)
    chunk_side, linked_side = random_source.sample(
        positions[number % len(positions)], 2
    )
    low, high = (int(share * unit_count) for share in THIRDS[chunk_side])
    last = unit_count - size
    first = random_source.randint(min(last, low), min(last, max(low, high - size)))
    chunk = (first, first + size)
    window = window_of(
        chunk, unit_count, settings.window_units, settings.window_margin, random_source
    )
    return LinkLayout(chunk, window, THIRDS[linked_side])
