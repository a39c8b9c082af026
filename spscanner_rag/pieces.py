"""Pieces of documents, as frameworks hand them over, joined to texts that are read as one, with a map back.

A piece is a whole document, a page or a chunk. Pieces of one group become one :class:`JoinedText`: in reading
order, what overlapping chunks share counted once, white space that a splitter dropped put back by its length.
Where text is missing, or a page or document ends, a new *run* begins: no sentence crosses from one to the next.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from spscanner_rag.reading_order import in_reading_order
from spscanner_rag.source_search import SourceSearch, overlap

LARGEST_WHITE_GAP = 64
"""A gap of up to so many characters between two chunks is taken for white space that the splitter dropped."""

RUN_SEPARATOR = "\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A stretch of a source document.

    Attributes
    ----------
    text
        Its text.
    key
        Tells it from the other pieces; ``previous`` and ``next`` of others point to it.
    source
        The document that ``start`` counts in.
    start
        Where ``text`` begins in the source, in characters. None if that is not known.
    group
        Sources of one group are read as one text, for instance the pages of a file. None: the source alone.
    position
        Place of the source in its group, such as a page number. None: as given.
    previous, next
        Keys of the pieces before and after it in the source, if known.
    """

    text: str
    key: str
    source: Hashable
    start: int | None = None
    group: Hashable | None = None
    position: float | None = None
    previous: str | None = None
    next: str | None = None


class Run(NamedTuple):
    """A stretch of a joined text without a break; its characters stand in the source in the same order."""

    start: int
    end: int
    source: Hashable
    source_start: int | None  # where the run begins in the source; None if that is not known


class Placed(NamedTuple):
    """Where a piece stands in a joined text."""

    start: int
    end: int
    number: int  # of the piece, in the order given
    exact: bool = True  # the text there is the piece's, and not the same but for white space


class Place(NamedTuple):
    """Where a span of a joined text comes from.

    Attributes
    ----------
    piece
        Number of the piece that holds the span, or of the one that holds most of it.
    piece_start, piece_end
        The span in that piece's text. None if the piece does not hold all of it.
    source
        The source of the span.
    source_start, source_end
        The span in the source. None if the piece's place there is not known.
    """

    piece: int
    piece_start: int | None
    piece_end: int | None
    source: Hashable
    source_start: int | None
    source_end: int | None


@dataclass(frozen=True, eq=False)
class JoinedText:
    """Pieces of one group as one text.

    Attributes
    ----------
    text
        What is scanned.
    runs
        Its unbroken stretches, in order; between two stands ``RUN_SEPARATOR``.
    placed
        Where the pieces stand in it, by their beginning. They cover the runs, unless the text of a whole
        source was at hand and only some of its pieces were given.
    """

    text: str
    runs: tuple[Run, ...]
    placed: tuple[Placed, ...]
    _longest: int = field(init=False)

    def __post_init__(self) -> None:
        longest = max((placed.end - placed.start for placed in self.placed), default=0)
        object.__setattr__(self, "_longest", longest)

    @cached_property
    def _starts(self) -> list[int]:
        return [placed.start for placed in self.placed]

    def touches(self, start: int, end: int) -> bool:
        """Whether any piece stands in the span."""
        return any(True for _ in self._within(start, end))

    def place(self, start: int, end: int) -> Place:
        """Where a span comes from, which lies in one run and touches a piece."""
        best = max(self._within(start, end), key=lambda p: (min(p.end, end) - max(p.start, start), -p.start))
        whole = best.exact and best.start <= start and end <= best.end
        run = self.runs[bisect_right(self.runs, start, key=lambda run: run.start) - 1]
        shift = None if run.source_start is None else run.source_start - run.start
        return Place(
            best.number,
            start - best.start if whole else None,
            end - best.start if whole else None,
            run.source,
            None if shift is None else start + shift,
            None if shift is None else end + shift,
        )

    def _within(self, start: int, end: int) -> Iterable[Placed]:
        first = bisect_left(self._starts, start - self._longest + 1)
        for placed in self.placed[first : bisect_left(self._starts, end)]:
            if placed.end > start:
                yield placed


def join_pieces(pieces: Sequence[Piece], sources: Mapping[Hashable, str] | None = None) -> list[JoinedText]:
    """Join pieces, group by group, in the order in which the groups first appear.

    Parameters
    ----------
    pieces
        In any order. Those of one source are ordered by ``start`` where it is known, else by ``previous`` and
        ``next``, else as given.
    sources
        Whole texts of sources, where they are at hand: then the whole source is read, and every span
        indexes it.

    Returns
    -------
    list of JoinedText
        Empty if there are no pieces.
    """
    groups: dict[Hashable, dict[Hashable, list[int]]] = {}
    for number, piece in enumerate(pieces):
        group = ("source", piece.source) if piece.group is None else ("group", piece.group)
        groups.setdefault(group, {}).setdefault(piece.source, []).append(number)
    return [_join_group(pieces, group, sources or {}) for group in groups.values()]


def _join_group(
    pieces: Sequence[Piece], group: dict[Hashable, list[int]], sources: Mapping[Hashable, str]
) -> JoinedText:
    positions = {source: pieces[numbers[0]].position for source, numbers in group.items()}
    ordered = list(group)
    if all(position is not None for position in positions.values()):
        ordered.sort(key=lambda source: positions[source] or 0)
    builder = _Builder()
    for source in ordered:
        numbers = in_reading_order(group[source], pieces)
        text = sources.get(source)
        if text is None:
            _add_pieces(builder, source, numbers, pieces)
        else:
            _add_source(builder, source, text, numbers, pieces)
    return builder.joined()


def _add_source(
    builder: "_Builder", source: Hashable, text: str, numbers: Sequence[int], pieces: Sequence[Piece]
) -> None:
    """The whole source, and where its pieces stand in it; what does not stand in it comes after."""
    builder.begin(source, 0)
    begin = builder.length
    builder.append(text)
    search = SourceSearch(text)
    strangers = []
    for number in numbers:
        found = search.find(pieces[number].text, pieces[number].start)
        if found is not None:
            builder.place(begin + found.start, begin + found.end, number, found.exact)
        elif pieces[number].text.strip():
            strangers.append(number)
    for number in strangers:
        builder.begin(source, None)
        builder.append(pieces[number].text, number)


def _add_pieces(
    builder: "_Builder", source: Hashable, numbers: Sequence[int], pieces: Sequence[Piece]
) -> None:
    strangers = []
    end: int | None = None  # of the run so far, in the source
    for number in numbers:
        piece = pieces[number]
        if piece.start is None:
            shared = overlap(builder.tail(source, len(piece.text)), piece.text)
            if not shared:
                builder.begin(source, None)
            builder.append(piece.text, number, shared)
            end = None if end is None or not shared else end + len(piece.text) - shared
            continue
        gap = None if end is None else piece.start - end
        if gap is None or gap > LARGEST_WHITE_GAP:
            builder.begin(source, piece.start)
            gap = 0
        if gap < 0 and not builder.ends_with(piece.text, -gap):
            strangers.append(number)  # its offset contradicts its text
            continue
        if gap > 0:
            builder.append(" " if gap == 1 else "\n" * gap)
        builder.append(piece.text, number, max(0, -gap))
        end = max(piece.start + len(piece.text), end or 0)
    for number in strangers:
        builder.begin(source, None)
        builder.append(pieces[number].text, number)


class _Builder:
    """Collects the runs of one joined text."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.part_starts: list[int] = []
        self.length = 0
        self.runs: list[Run] = []
        self.placed: list[Placed] = []
        self._open: Run | None = None

    def begin(self, source: Hashable, source_start: int | None) -> None:
        """End the run and begin another."""
        self._close()
        if self.length:
            self._add(RUN_SEPARATOR)
        self._open = Run(self.length, self.length, source, source_start)

    def append(self, text: str, number: int | None = None, shared: int = 0) -> None:
        """Add a text to the run, whose last ``shared`` characters begin it, or hold it."""
        start = self.length - shared
        self._add(text[shared:])
        if number is not None:
            self.place(start, start + len(text), number)

    def place(self, start: int, end: int, number: int, exact: bool = True) -> None:
        """Say where a piece stands."""
        self.placed.append(Placed(start, end, number, exact))

    def tail(self, source: Hashable, characters: int) -> str:
        """The last characters of the open run; none if it is not of this source."""
        if self._open is None or self._open.source != source:
            return ""
        return self._slice(max(self._open.start, self.length - characters), self.length)

    def ends_with(self, text: str, shared: int) -> bool:
        """Whether the last ``shared`` characters of the run begin ``text``, or begin with it."""
        assert self._open is not None
        start = self.length - shared
        return start >= self._open.start and text.startswith(
            self._slice(start, min(start + len(text), self.length))
        )

    def joined(self) -> JoinedText:
        """All that was added."""
        self._close()
        text = self.parts[0] if len(self.parts) == 1 else "".join(self.parts)
        return JoinedText(text, tuple(self.runs), tuple(sorted(self.placed)))

    def _slice(self, start: int, end: int) -> str:
        first = bisect_right(self.part_starts, start) - 1
        last = bisect_left(self.part_starts, end)
        if first < 0 or start >= end:
            return ""
        shift = self.part_starts[first]
        if last == first + 1:
            return self.parts[first][start - shift : end - shift]
        return "".join(self.parts[first:last])[start - shift : end - shift]

    def _add(self, text: str) -> None:
        if text:
            self.parts.append(text)
            self.part_starts.append(self.length)
            self.length += len(text)

    def _close(self) -> None:
        if self._open is not None and self.length > self._open.start:
            self.runs.append(self._open._replace(end=self.length))
        self._open = None
