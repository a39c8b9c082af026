"""Chooses the rows of a document that a comparison shows, so that its page stays small."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, zip_longest
from typing import NamedTuple

from spscanner_rag.apps.compare.retrievals import Retrievals
from spscanner_rag.apps.pages.quotes import Breaks

CONTEXT = 240  # characters on each side of a pick
ROW, LONGEST_ROW = 1_000, 2_000  # characters after which a row ends with a paragraph, or at the latest
SHOWN = 2_000_000  # characters in all columns together
KEPT = 600_000  # characters of elided stretches that can be unfolded; of a document with more, none can


class Stretch(NamedTuple):
    """Characters ``start`` to ``end`` of the document, a row that is ``shown`` or several that are not."""

    start: int
    end: int
    shown: bool


@dataclass(frozen=True)
class Layout:
    """All stretches of a document in order, the same for all retrievers.

    Picks after ``lowest_rank`` are not shown, to keep the page small; None if all are.
    """

    stretches: tuple[Stretch, ...]
    lowest_rank: int | None

    @property
    def keeps_elided(self) -> bool:
        """True if the page holds what it does not show."""
        return sum(each.end - each.start for each in self.stretches if not each.shown) <= KEPT

    def shows(self, offset: int) -> bool:
        """True if the character at this offset is in a shown stretch."""
        place = bisect_right(self.stretches, offset, key=lambda stretch: stretch.end)
        return place < len(self.stretches) and self.stretches[place].shown


def lay_out(comparison: Retrievals, breaks: Breaks) -> Layout:
    """Choose the rows to show: both ends of the evidence and of all retrievers' picks, from rank 1 on."""
    rows = list(_rows(comparison.text, breaks))
    ends = [end for _, end in rows]
    shown: set[int] = set()
    left, lowest = SHOWN // len(comparison.retrievals), None
    for rank, spans in enumerate(_by_rank(comparison)):
        offsets = [
            offset for start, end in spans for offset in (start - CONTEXT, start, end - 1, end + CONTEXT)
        ]
        more = {min(bisect_right(ends, offset), len(rows) - 1) for offset in offsets} - shown
        left -= sum(rows[row][1] - rows[row][0] for row in more)
        if left < 0 and rank > 1:  # evidence and all picks of rank 1 are always shown
            lowest = rank - 1
            break
        shown |= more
    stretches: list[Stretch] = []
    for is_shown, group in groupby(range(len(rows)), shown.__contains__):
        own = [rows[row] for row in group]
        stretches += (
            [Stretch(*row, True) for row in own] if is_shown else [Stretch(own[0][0], own[-1][1], False)]
        )
    return Layout(tuple(stretches), lowest)


def _by_rank(comparison: Retrievals) -> Iterator[list[tuple[int, int]]]:
    """The evidence, then the spans of rank 1, then those of rank 2 and so on."""
    yield list(comparison.evidence)
    for picks in zip_longest(*(retrieval.picks for retrieval in comparison.retrievals)):
        yield [(pick.start, pick.end) for pick in picks if pick]


def _rows(text: str, breaks: Breaks) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(text):
        far = start + LONGEST_ROW
        feed = text.find("\n", start + ROW, far)
        while feed >= 0 and (breaks.is_soft(feed) or text[feed + 1 : feed + 2] == "\n"):
            feed = text.find("\n", feed + 1, far)
        end = feed + 1 or text.rfind(" ", start + ROW, far) + 1 or far
        yield start, min(end, len(text))
        start = end
