"""A document with its scores and selected sentences, for the terminal and the page."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spscanner_rag.files.documents import TextFile
from spscanner_rag.results import Passage, ScanResult
from spscanner_rag.results.selection import rank


@dataclass(frozen=True)
class ScannedDocument:
    """A document, its scores and its selected sentences.

    ``passages`` are the selected sentences and their neighbours, unmerged, in the order asked for. ``picks`` are
    the passages that were selected for their score, in the same order.
    """

    document: TextFile
    result: ScanResult
    passages: tuple[Passage, ...]
    picks: tuple[Passage, ...]

    def number(self, passage: Passage) -> int:
        """The number of the sentence, from 0, that an unmerged passage is."""
        return int(np.searchsorted(self.result.starts, passage.start))

    @cached_property
    def ranks(self) -> dict[int, int]:
        """Rank from 1 of each pick, by the offset at which it starts."""
        picked = {passage.start for passage in self.picks}
        starts = self.result.starts[rank(self.result.logits)].tolist()
        return {start: place for place, start in enumerate(filter(picked.__contains__, starts), start=1)}
