"""Builds the joined text of one source, run by run."""

from bisect import bisect_left, bisect_right
from collections.abc import Hashable

from spscanner_rag.retrieval.joined_text import (
    RUN_SEPARATOR,
    JoinedText,
    Placed,
    Run,
)


class JoinedTextBuilder:
    """Collects the runs of one source."""

    def __init__(self, source: Hashable) -> None:
        self.length = 0
        self._source = source
        self._strings: list[str] = []
        self._string_starts: list[int] = []
        self._runs: list[Run] = []
        self._placed: list[Placed] = []
        self._run_start = 0  # of the current run
        self._run_source_start: int | None = None

    def begin(self, source_start: int | None) -> None:
        """Close the current run and begin another."""
        self._close()
        if self.length:
            self.fill(RUN_SEPARATOR)
        self._run_start = self.length
        self._run_source_start = source_start

    def append(
        self,
        text: str,
        number: int,
        *,
        shared: int = 0,
        source_start: int | None = None,
    ) -> None:
        """Add a piece, whose first ``shared`` characters the run already has.

        ``source_start`` may place the run.
        """
        start = self.length - shared
        self.fill(text[shared:])
        anchored = source_start is not None
        self.place(Placed(start, start + len(text), number, anchored=anchored))
        if self._run_source_start is None and source_start is not None:
            self._run_source_start = source_start - (start - self._run_start)

    def fill(self, text: str) -> None:
        """Add text that does not belong to a piece to the run."""
        if text:
            self._strings.append(text)
            self._string_starts.append(self.length)
            self.length += len(text)

    def place(self, placed: Placed) -> None:
        """Record the span of a piece."""
        if placed.end > placed.start:
            self._placed.append(placed)

    def gap(self, source_start: int) -> int | None:
        """Number of source characters from the run's end to ``source_start``.

        Negative for an overlap; None if the run's place is unknown.
        """
        if self._run_source_start is None:
            return None
        run_length = self.length - self._run_start
        return source_start - self._run_source_start - run_length

    def tail(self, characters: int) -> str:
        """The last characters of the run."""
        return self._slice(max(self._run_start, self.length - characters), self.length)

    def ends_with(self, text: str, shared: int) -> bool:
        """Whether ``text`` begins like the last ``shared`` characters of the run.

        They are compared over the shorter length.
        """
        start = self.length - shared
        if start < self._run_start:
            return False
        stop = min(start + len(text), self.length)
        return text.startswith(self._slice(start, stop))

    def joined(self) -> JoinedText:
        """The joined text."""
        self._close()
        placed = tuple(sorted(self._placed))
        return JoinedText(_joined_once(self._strings), tuple(self._runs), placed)

    def _slice(self, start: int, end: int) -> str:
        if start >= end:
            return ""
        first = bisect_right(self._string_starts, start) - 1
        stop = bisect_left(self._string_starts, end)
        shift = self._string_starts[first]
        return _joined_once(self._strings[first:stop])[start - shift : end - shift]

    def _close(self) -> None:
        if self.length > self._run_start:
            source_start = self._run_source_start
            run = Run(self._run_start, self.length, self._source, source_start)
            self._runs.append(run)
        elif self._run_start:  # an empty run: remove its separator
            self._string_starts.pop()
            self.length -= len(self._strings.pop())


def _joined_once(strings: list[str]) -> str:
    """The strings joined, without a copy of a single one."""
    return strings[0] if len(strings) == 1 else "".join(strings)
