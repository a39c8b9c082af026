"""Chooses the stretches of a document that a comparison shows, so that its page stays small."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest

from spscanner_rag.apps.compare.retrievals import Retrievals, merged
from spscanner_rag.apps.pages.quotes import Breaks

CONTEXT = 240  # characters on each side of a pick, approximately
LONGEST = 4_000  # characters of a pick or an evidence span; a longer one shows its two ends
SHORTEST_GAP = 400  # characters; a shorter gap is shown
ROW = 1_600  # characters after which a row ends at the next line break
LONGEST_ROW = 16_000  # characters after which a row ends in any case
SHOWN = 2_000_000  # characters in all columns together
KEPT = 600_000  # characters of elided stretches that can be unfolded

_WORD_EDGE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Stretch:
    """Characters ``start`` to ``end`` of the document, ``shown`` or elided, the same for all retrievers."""

    start: int
    end: int
    shown: bool


@dataclass(frozen=True)
class Layout:
    """All stretches of a document in order, with at most `LONGEST_ROW` characters shown at a time.

    Picks after ``lowest_rank`` are not shown, to keep the page small; None if all are.
    """

    stretches: tuple[Stretch, ...]
    lowest_rank: int | None

    @cached_property
    def kept_per_gap(self) -> int:
        """Characters of each elided stretch that the page holds."""
        gaps = [stretch.end - stretch.start for stretch in self.stretches if not stretch.shown]
        return sum(gaps) if sum(gaps) <= KEPT else KEPT // len(gaps)

    @cached_property
    def _ends(self) -> list[int]:
        return [stretch.end for stretch in self.stretches]

    def shows(self, offset: int) -> bool:
        """True if the character at this offset is in a shown stretch."""
        place = bisect_right(self._ends, offset)
        return place < len(self.stretches) and self.stretches[place].shown


def lay_out(comparison: Retrievals, breaks: Breaks) -> Layout:
    """Choose the stretches to show: evidence, and the picks of all retrievers from rank 1 on, with context."""
    text, columns = comparison.text, len(comparison.retrievals)
    wanted: list[tuple[int, int]] = []
    left, lowest = SHOWN, None
    for rank, spans in enumerate(_by_rank(comparison)):
        ends = [part for span in spans for part in _ends_of_long(*span)]
        cost = columns * sum(end - start + 2 * CONTEXT for start, end in ends)
        if cost > left and rank > 1:  # evidence and all picks of rank 1 are always shown
            lowest = rank - 1
            break
        left -= cost
        wanted += [(_start(text, start), _end(text, end)) for start, end in ends]
    stretches: list[Stretch] = []
    cursor = 0
    for start, end in _worth_gaps(wanted, len(text)):
        if start > cursor:
            stretches.append(Stretch(cursor, start, False))
        stretches += [Stretch(*row, True) for row in _rows(text, breaks, start, end)]
        cursor = end
    if cursor < len(text):
        stretches.append(Stretch(cursor, len(text), False))
    return Layout(tuple(stretches), lowest)


def _by_rank(comparison: Retrievals) -> Iterator[list[tuple[int, int]]]:
    """The evidence, then the spans of rank 1, then those of rank 2 and so on."""
    yield list(comparison.evidence)
    for picks in zip_longest(*(retrieval.picks for retrieval in comparison.retrievals)):
        yield [(pick.start, pick.end) for pick in picks if pick]


def _ends_of_long(start: int, end: int) -> list[tuple[int, int]]:
    if end - start <= LONGEST:
        return [(start, end)]
    return [(start, start + LONGEST // 2), (end - LONGEST // 2, end)]


def _start(text: str, start: int) -> int:
    """Return the start of the context before a pick: at a line that begins nearby, else at a word."""
    low = max(0, start - CONTEXT)
    if low == 0:
        return 0
    line = text.rfind("\n", max(0, low - CONTEXT), low) + 1
    if line:
        return line
    edge = _WORD_EDGE.search(text, low, start)
    return edge.end() if edge else low


def _end(text: str, end: int) -> int:
    """Return the end of the context after a pick: at a line that ends nearby, else at a word."""
    high = min(len(text), end + CONTEXT)
    line = text.find("\n", high, high + CONTEXT)
    if line >= 0:
        return line + 1
    edge = _WORD_EDGE.search(text, high, high + CONTEXT)
    return edge.end() if edge else high


def _worth_gaps(wanted: list[tuple[int, int]], characters: int) -> list[tuple[int, int]]:
    """The spans extended over gaps that are too short to elide: between them, at the start and at the end."""
    spans = merged(wanted, SHORTEST_GAP)
    if spans and spans[0][0] < SHORTEST_GAP:
        spans[0] = (0, spans[0][1])
    if spans and characters - spans[-1][1] < SHORTEST_GAP:
        spans[-1] = (spans[-1][0], characters)
    return spans


def _rows(text: str, breaks: Breaks, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Cut a stretch where a paragraph ends, or after `LONGEST_ROW` characters if none ends before."""
    while end - start > ROW:
        far = min(end, start + LONGEST_ROW)
        feed = text.find("\n", start + ROW, far)
        while feed >= 0 and (breaks.is_soft(feed) or text[feed + 1 : feed + 2] == "\n"):
            feed = text.find("\n", feed + 1, far)
        cut = feed + 1 if feed >= 0 else start + LONGEST_ROW
        if cut >= end:
            break
        yield start, cut
        start = cut
    yield start, end
