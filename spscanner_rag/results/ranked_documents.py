"""Documents ranked for one question, each with its score and the sentences that earned it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spscanner_rag.results.document_score import Aggregation, best_first
from spscanner_rag.results.scan_result import ScanResult
from spscanner_rag.results.selection import sigmoid
from spscanner_rag.results.sentences import Passage


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
