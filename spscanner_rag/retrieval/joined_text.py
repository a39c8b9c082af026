"""Several pieces joined to one text, with a map from its spans back to the pieces and their sources."""

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from spscanner_rag.scorers import Scorer, segment
from spscanner_rag.text.pages import page_bodies, sentence_goes_on
from spscanner_rag.text.units import Segmenter, Unit

RUN_SEPARATOR = "\n\n"
# before a run that continues the sentence of the previous run, as on the next page
CONTINUED = "\n"


class Run(NamedTuple):
    """A contiguous stretch of a joined text.

    Its characters are in the same order in the source.
    """

    start: int
    end: int
    source: Hashable
    source_start: int | None  # where the run begins in the source; None if unknown
    continues: bool = False  # whether a sentence of the previous run may continue in it


class Placed(NamedTuple):
    """The span of a piece in a joined text."""

    start: int
    end: int
    number: int  # index of the piece, in the order given
    exact: bool = True  # False if the white space there differs from the piece's
    anchored: bool = True  # False if the place in the source was guessed
    # characters of the piece that are left out before the span; white space counts if
    # exact
    offset: int = 0

    def holds(self, start: int, end: int) -> bool:
        """Whether the piece contains the whole span."""
        return self.start <= start and end <= self.end


class Place(NamedTuple):
    """Where a span of a joined text comes from, or its first part that overlaps a piece."""

    piece: int  # index of the piece that contains the span, or most of it
    piece_start: (
        int | None
    )  # the span in that piece's text; None unless the piece contains all of it
    piece_end: int | None
    source: Hashable
    source_start: int | None  # the span in the source; None if unknown
    source_end: int | None


@dataclass(frozen=True, eq=False)
class JoinedText:
    """Pieces of one group as one text.

    Their spans cover its runs unless the source's whole text was given.
    """

    text: str  # what is scanned
    runs: tuple[Run, ...]  # its contiguous stretches, in order
    placed: tuple[Placed, ...]  # the spans of the pieces, sorted by start

    def touches(self, start: int, end: int) -> bool:
        """Whether any piece overlaps the span."""
        return bool(self._near(start, end))

    @cached_property
    def blocks(self) -> tuple[int, ...]:
        """Starts of the stretches that are cut into sentences separately: of the runs that continue no other."""
        return tuple(run.start for run in self.runs if not run.continues)

    def place(self, start: int, end: int) -> Place:
        """Where a span comes from; the span must overlap a piece."""
        places = list(self.places(start, end))
        first = places[0]
        if len(places) == len(self.runs_of(start, end)):
            return first
        return Place(first.piece, None, None, first.source, None, None)

    def places(self, start: int, end: int) -> Iterator[Place]:
        """Where the parts of a span come from, run by run.

        Runs in which no piece overlaps it are left out.
        """
        for run in self.runs_of(start, end):
            first, last = max(start, run.start), min(end, run.end)
            if not (touching := list(self.touching(first, last))):
                continue
            holders = [p for p in touching if p.holds(first, last)]
            holder = next((p for p in holders if p.exact), None)
            best = holder or max(
                touching, key=lambda p: min(p.end, last) - max(p.start, first)
            )
            place = Place(best.number, None, None, run.source, None, None)
            if holder:
                shift = best.offset - best.start
                place = place._replace(
                    piece_start=first + shift, piece_end=last + shift
                )
            anchored = any(p.anchored for p in holders) or all(
                p.anchored for p in touching
            )
            if run.source_start is not None and anchored:
                shift = run.source_start - run.start
                place = place._replace(
                    source_start=first + shift, source_end=last + shift
                )
            yield place

    def runs_of(self, start: int, end: int) -> list[Run]:
        """The runs that overlap a span."""
        first = bisect_right(self.runs, start, key=lambda run: run.end)
        return list(
            self.runs[first : bisect_left(self.runs, end, key=lambda run: run.start)]
        )

    def touching(self, start: int, end: int) -> Iterator[Placed]:
        """The pieces that overlap the span, in order."""
        for number in self._near(start, end):
            if self.placed[number].end > start:
                yield self.placed[number]

    def _near(self, start: int, end: int) -> range:
        """Indices of all pieces that may overlap a span; the first of them does."""
        last = bisect_left(self.placed, end, key=lambda placed: placed.start)
        return range(bisect_right(self._reach, start), last)

    @cached_property
    def _reach(self) -> list[int]:
        """For each piece, the largest end of it and the pieces before it."""
        return list(accumulate((placed.end for placed in self.placed), max))


class JoinedTextBuilder:
    """Collects the runs of one source."""

    def __init__(self, source: Hashable) -> None:
        self.length = 0
        self._parts: list[str] = []
        self._part_starts: list[int] = []
        self._runs: list[Run] = []
        self._placed: list[Placed] = []
        self._run = Run(
            0, 0, source, None
        )  # the current one; its end is set when it is closed

    def begin(self, source_start: int | None) -> None:
        """Close the current run and begin another."""
        self._close()
        if self.length:
            self.fill(RUN_SEPARATOR)
        self._run = Run(self.length, self.length, self._run.source, source_start)

    def append(
        self,
        text: str,
        number: int,
        *,
        shared: int = 0,
        source_start: int | None = None,
    ) -> None:
        """Add a piece; the run already has its first ``shared`` characters.

        ``source_start`` may place the run.
        """
        start = self.length - shared
        self.fill(text[shared:])
        self.place(
            Placed(start, start + len(text), number, anchored=source_start is not None)
        )
        if self._run.source_start is None and source_start is not None:
            self._run = self._run._replace(
                source_start=source_start - (start - self._run.start)
            )

    def fill(self, text: str) -> None:
        """Add text that does not belong to a piece to the run."""
        if text:
            self._parts.append(text)
            self._part_starts.append(self.length)
            self.length += len(text)

    def place(self, placed: Placed) -> None:
        """Record the span of a piece."""
        if placed.end > placed.start:
            self._placed.append(placed)

    def gap(self, source_start: int) -> int | None:
        """Number of source characters from the run's end to ``source_start``, negative for an overlap, or None."""
        if self._run.source_start is None:
            return None
        return source_start - self._run.source_start - (self.length - self._run.start)

    def tail(self, characters: int) -> str:
        """The last characters of the run."""
        return self._slice(max(self._run.start, self.length - characters), self.length)

    def ends_with(self, text: str, shared: int) -> bool:
        """Whether ``text`` begins like the last ``shared`` characters of the run, over the shorter length."""
        start = self.length - shared
        return start >= self._run.start and text.startswith(
            self._slice(start, min(start + len(text), self.length))
        )

    def joined(self) -> JoinedText:
        """The joined text."""
        self._close()
        text = self._parts[0] if len(self._parts) == 1 else "".join(self._parts)
        return JoinedText(text, tuple(self._runs), tuple(sorted(self._placed)))

    def _slice(self, start: int, end: int) -> str:
        if start >= end:
            return ""
        first = bisect_right(self._part_starts, start) - 1
        parts, shift = (
            self._parts[first : bisect_left(self._part_starts, end)],
            self._part_starts[first],
        )
        return (parts[0] if len(parts) == 1 else "".join(parts))[
            start - shift : end - shift
        ]

    def _close(self) -> None:
        if self.length > self._run.start:
            self._runs.append(self._run._replace(end=self.length))
        elif self._run.start:  # an empty run: remove its separator
            self._part_starts.pop()
            self.length -= len(self._parts.pop())


class Part(NamedTuple):
    """The text of one source, or of its available chunks."""

    joined: JoinedText
    number: float | None = None  # its page number; None if unknown
    page: bool = False  # whether it is a page with all of its text, as one run


def join_parts(parts: Sequence[Part]) -> JoinedText:
    """Join parts in order, without running headers and footers of pages.

    A page may continue the previous one.
    """
    if len(parts) == 1:
        return parts[0].joined
    text: list[str] = []
    runs: list[Run] = []
    placed: list[Placed] = []
    length = 0
    for part, (start, end, continues) in zip(parts, _bodies(parts), strict=True):
        if length and end > start:
            text.append(CONTINUED if continues else RUN_SEPARATOR)
            length += len(text[-1])
        own, shift = part.joined, length - start
        for run in own.runs:
            first, last = max(run.start, start), min(run.end, end)
            if first < last:
                source_start = (
                    None
                    if run.source_start is None
                    else run.source_start + first - run.start
                )
                goes_on = continues and first == start
                runs.append(
                    Run(first + shift, last + shift, run.source, source_start, goes_on)
                )
        for piece in own.placed:
            first, last = max(piece.start, start), min(piece.end, end)
            if first < last:
                left_out = own.text[piece.start : first]
                offset = piece.offset + len(
                    left_out if piece.exact else "".join(left_out.split())
                )
                placed.append(
                    piece._replace(start=first + shift, end=last + shift, offset=offset)
                )
        text.append(own.text[start:end])
        length += end - start
    return JoinedText("".join(text), tuple(runs), tuple(placed))


def _bodies(parts: Sequence[Part]) -> list[tuple[int, int, bool]]:
    """The span that is read of each part, and whether it continues the sentence of the previous page."""
    bodies = [(0, len(part.joined.text), False) for part in parts]
    pages = {
        n: float(n) if part.number is None else part.number
        for n, part in enumerate(parts)
        if part.page
    }
    texts = [parts[number].joined.text for number in pages]
    for number, span in zip(
        pages, page_bodies(texts, list(pages.values())), strict=True
    ):
        bodies[number] = (*span, False)
    known = {
        number: page
        for number, page in pages.items()
        if parts[number].number is not None
    }
    for number, page in known.items():
        if page - known.get(number - 1, page) != 1:
            continue  # not known to follow the previous page directly
        (start_before, end_before, goes_on), (start, end, _) = (
            bodies[number - 1],
            bodies[number],
        )
        before = parts[number - 1].joined.text[start_before:end_before]
        after = parts[number].joined.text[start:end]
        if sentence_goes_on(before, after):
            bodies[number - 1] = (
                start_before,
                start_before + len(before.rstrip()),
                goes_on,
            )
            bodies[number] = end - len(after.lstrip()), end, True
    return bodies


def cut(scorer: Scorer | Segmenter, joined: JoinedText) -> list[Unit]:
    """Segment each block separately.

    The separator after it is read too, so that no word joins two blocks.
    """
    if len(joined.blocks) == 1:
        return segment(scorer, joined.text)
    units: list[Unit] = []
    stops = [*joined.blocks, len(joined.text)][1:]
    for block, stop in zip(joined.blocks, stops, strict=True):
        own = segment(scorer, joined.text[block:stop])
        if (
            own
            and units
            and not (
                units[-1].model_text[-1:].isspace() or own[0].model_text[:1].isspace()
            )
        ):
            # `ReferenceSegmenter` trims the white space at both ends.
            own = [
                own[0]._replace(model_text=RUN_SEPARATOR + own[0].model_text),
                *own[1:],
            ]
        units += (
            Unit(block + start, block + end, model_text)
            for start, end, model_text in own
        )
    return units
