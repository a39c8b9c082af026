"""Pieces joined to one text, with a map from its spans back to their sources."""

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import accumulate
from typing import NamedTuple

RUN_SEPARATOR = "\n\n"


class Run(NamedTuple):
    """A contiguous stretch of a joined text.

    Its characters are in the same order in the source.
    """

    start: int
    end: int
    source: Hashable
    source_start: int | None  # where the run begins in the source; None if unknown
    continues: bool = False  # whether a sentence of the previous run may continue in it

    def source_span(self, start: int, end: int) -> tuple[int | None, int | None]:
        """A span of the joined text, inside this run, as a span of the source."""
        if self.source_start is None:
            return None, None
        shift = self.source_start - self.start
        return start + shift, end + shift


class Placed(NamedTuple):
    """The span of a piece in a joined text."""

    start: int
    end: int
    number: int  # index of the piece among those that were joined
    exact: bool = True  # False if the white space there differs from the piece's
    anchored: bool = True  # False if the place in the source was guessed
    # characters of the piece that are left out before the span; white space counts if
    # exact
    offset: int = 0

    def holds(self, start: int, end: int) -> bool:
        """Whether the piece contains the whole span."""
        return self.start <= start and end <= self.end

    def shared_length(self, start: int, end: int) -> int:
        """Number of characters of a span that the piece contains."""
        return min(self.end, end) - max(self.start, start)


class Place(NamedTuple):
    """Where a span of a joined text comes from, or its first part in a piece."""

    piece_number: int  # index of the piece that contains the span, or most of it
    # the span in that piece's text; None unless the piece contains all of it
    piece_start: int | None
    piece_end: int | None
    source: Hashable
    source_start: int | None  # the span in the source; None if unknown
    source_end: int | None


@dataclass(frozen=True, eq=False)
class JoinedText:
    """Pieces of one group as one text.

    Their spans cover its runs unless the source's whole text was passed.

    Attributes
    ----------
    text : str
        What is scanned.
    runs : tuple of Run
        Its contiguous stretches, in order.
    placed : tuple of Placed
        The spans of the pieces, sorted by start.

    Examples
    --------
    >>> from spscanner_rag.retrieval import Piece, join_pieces
    >>> first = Piece(text="The well was dry.", key="1", source="a.txt", start=100)
    >>> second = Piece(text="They left.", key="2", source="a.txt", start=118)
    >>> joined = join_pieces([first, second])[0]
    >>> joined.text
    'The well was dry. They left.'
    >>> place = joined.place(18, 28)
    >>> place.piece_number, place.source_start, place.source_end
    (1, 118, 128)
    """

    text: str
    runs: tuple[Run, ...]
    placed: tuple[Placed, ...]

    @cached_property
    def blocks(self) -> tuple[int, ...]:
        """Starts of the stretches that are cut into sentences separately.

        A run that continues another one is in the other's block.
        """
        return tuple(run.start for run in self.runs if not run.continues)

    @cached_property
    def digest(self) -> str:
        """A digest of the text and of the starts of its runs."""
        digest = sha256(self.text.encode("utf-8", "surrogatepass"))
        digest.update(repr([run.start for run in self.runs[1:]]).encode())
        return digest.hexdigest()[:32]

    def touches(self, start: int, end: int) -> bool:
        """Whether any piece overlaps the span."""
        return bool(self._near(start, end))

    def touching(self, start: int, end: int) -> Iterator[Placed]:
        """The pieces that overlap the span, in order."""
        for number in self._near(start, end):
            if self.placed[number].end > start:
                yield self.placed[number]

    def place(self, start: int, end: int) -> Place:
        """Where a span that overlaps a piece comes from."""
        run_places = list(self.places_by_run(start, end))
        first = run_places[0]
        if len(run_places) == len(self.runs_of(start, end)):
            return first
        return Place(first.piece_number, None, None, first.source, None, None)

    def places_by_run(self, start: int, end: int) -> Iterator[Place]:
        """Where the parts of a span come from, run by run.

        Runs in which no piece overlaps it are left out.
        """
        for run in self.runs_of(start, end):
            first = max(start, run.start)
            last = min(end, run.end)
            touching = list(self.touching(first, last))
            if touching:
                yield _place_in_run(run, touching, first, last)

    def runs_of(self, start: int, end: int) -> Sequence[Run]:
        """The runs that overlap a span."""
        first = bisect_right(self.runs, start, key=lambda run: run.end)
        stop = bisect_left(self.runs, end, key=lambda run: run.start)
        return self.runs[first:stop]

    def _near(self, start: int, end: int) -> range:
        """Indices of all pieces that may overlap a span, the first of which does."""
        stop = bisect_left(self.placed, end, key=lambda placed: placed.start)
        return range(bisect_right(self._reach, start), stop)

    @cached_property
    def _reach(self) -> list[int]:
        """For each piece, the largest end of it and the pieces before it."""
        return list(accumulate((placed.end for placed in self.placed), max))


def _place_in_run(run: Run, touching: Sequence[Placed], start: int, end: int) -> Place:
    """Where a span inside a run comes from, by the pieces that it overlaps."""
    holders = [placed for placed in touching if placed.holds(start, end)]
    exact_holders = [placed for placed in holders if placed.exact]
    if exact_holders:
        best = exact_holders[0]
        shift = best.offset - best.start
        piece_span: tuple[int | None, int | None] = (start + shift, end + shift)
    else:
        best = max(touching, key=lambda placed: placed.shared_length(start, end))
        piece_span = (None, None)
    anchored = any(placed.anchored for placed in holders)
    if anchored or all(placed.anchored for placed in touching):
        source_span = run.source_span(start, end)
    else:
        source_span = (None, None)
    return Place(best.number, *piece_span, run.source, *source_span)
