"""A document with its scores and selected sentences, for the terminal and the page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spscanner_rag.files.documents import TextFile
from spscanner_rag.results import Compression, Passage, ScanResult
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
    ranks_of_all: Mapping[int, int] | None = (
        None  # of each pick by its start, among the picks of all documents
    )

    def number(self, passage: Passage) -> int:
        """The number of the sentence, from 0, that an unmerged passage is."""
        return int(np.searchsorted(self.result.starts, passage.start))

    @cached_property
    def ranks(self) -> dict[int, int]:
        """Rank from 1 of each pick, by the offset at which it starts."""
        if self.ranks_of_all is not None:
            return dict(self.ranks_of_all)
        picked = {passage.start for passage in self.picks}
        starts = self.result.starts[rank(self.result.logits)].tolist()
        return {start: place for place, start in enumerate(filter(picked.__contains__, starts), start=1)}


def compression_of(documents: Sequence[ScannedDocument]) -> Compression | None:
    """Tokens of all passages, one by one, and of all documents; None where nothing counts tokens."""
    kept = read = 0
    for scanned in documents:
        count = scanned.result.count_tokens
        if count is None:
            return None
        kept += sum(count(passage.text) for passage in scanned.passages)
        tokens = scanned.result.tokens_read
        read += count(scanned.result.text) if tokens is None else tokens
    return Compression(kept, read)
