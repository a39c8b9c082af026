"""One selection over the results of several documents that one question was asked of."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np

from spscanner_rag.results.document_score import Aggregation, best_first
from spscanner_rag.results.scan_result import ScanResult
from spscanner_rag.results.selection import Selection, sigmoid
from spscanner_rag.results.sentences import Passage

_BETWEEN_TEXTS = "\n\n"


class Together:
    """The results of several documents, at least one, of which sentences are selected as if they were one.

    Neighbours and merged passages stay within a block of a document. The first one's ``count_tokens`` counts.
    """

    def __init__(self, results: Sequence[ScanResult]) -> None:
        ends = accumulate(len(result.text) + len(_BETWEEN_TEXTS) for result in results[:-1])
        self._offsets = [0, *ends]  # where each document begins in the joined text
        self._owners = np.repeat(np.arange(len(results)), [len(result.logits) for result in results])
        self.joined = results[0] if len(results) == 1 else self._join(results)

    def _join(self, results: Sequence[ScanResult]) -> ScanResult:
        placed = list(zip(results, self._offsets, strict=True))
        blocks = np.concatenate([result.block_of for result in results])
        begins = (np.diff(blocks, prepend=blocks[:1]) != 0) | (np.diff(self._owners, prepend=0) != 0)
        return ScanResult(
            results[0].query,
            _BETWEEN_TEXTS.join(result.text for result in results),
            np.concatenate([result.starts + offset for result, offset in placed]),
            np.concatenate([result.ends + offset for result, offset in placed]),
            np.concatenate([result.logits for result in results]),
            results[0].count_tokens,
            np.cumsum(begins),  # a number for each block of each document
        )

    def select(self, selection: Selection) -> list[tuple[int, Passage]]:
        """Passages, each after its document's number; ``ValueError`` for a budget without a counter."""
        found = []
        for passage in self.joined.selected(selection, self._owners):
            number = bisect_right(self._offsets, passage.start) - 1
            start, end = passage.start - self._offsets[number], passage.end - self._offsets[number]
            found.append((number, replace(passage, start=start, end=end)))
        return found


@dataclass(frozen=True, slots=True)
class RankedDocument:
    """A document in a ranking: its index among those given, its `ScanResult.document_score`, its sentences."""

    number: int
    logit: float
    result: ScanResult

    @property
    def score(self) -> float:
        """The sigmoid of the logit."""
        return float(sigmoid(np.array(self.logit)))

    @property
    def text(self) -> str:
        """The document."""
        return self.result.text

    def passages(self, top_k: float | str | None = 3) -> tuple[Passage, ...]:
        """Its best sentences, the best first; ``top_k`` is as for `ScanResult.select`."""
        return self.result.select(top_k, order="score")

    def to_dict(self, return_documents: bool = False) -> dict[str, Any]:
        """The item of sentence-transformers' ``CrossEncoder.rank``; ``return_documents`` adds the text."""
        item: dict[str, Any] = {"corpus_id": self.number, "score": self.score}
        return item | {"text": self.text} if return_documents else item


def rank_results(results: Sequence[ScanResult], aggregation: Aggregation = "max") -> list[RankedDocument]:
    """Rank the results of one question, the best first; among equal ones the earlier first."""
    logits = [result.document_score(aggregation) for result in results]
    return [RankedDocument(number, logit, results[number]) for number, logit in best_first(logits)]
