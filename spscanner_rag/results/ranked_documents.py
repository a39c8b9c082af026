"""Documents ranked by the scores of their sentences."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spscanner_rag.results.document_scores import Aggregation
from spscanner_rag.results.passages import Passage
from spscanner_rag.results.ranking import best_first, sigmoid
from spscanner_rag.results.scan_result import ScanResult


@dataclass(frozen=True, slots=True)
class RankedDocument:
    """A document in a ranking.

    Attributes
    ----------
    number : int
        Its index among the documents that were ranked.
    logit : float
        Its `ScanResult.document_score`.
    result : ScanResult
        Its sentences and their scores.

    Examples
    --------
    >>> result = ScanResult("Who?", "The keeper.", [0], [11], [2.0])
    >>> document = RankedDocument(0, 2.0, result)
    >>> round(document.score, 3), document.passages()[0].text
    (0.881, 'The keeper.')
    """

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
        """Its best sentences, the best first.

        ``top_k`` is as for `ScanResult.select`.
        """
        return self.result.select(top_k, order="score")

    def to_dict(self, return_documents: bool = False) -> dict[str, Any]:
        """An item as in sentence-transformers' ``CrossEncoder.rank``.

        ``return_documents`` adds its text.
        """
        item: dict[str, Any] = {"corpus_id": self.number, "score": self.score}
        if return_documents:
            item["text"] = self.text
        return item


def rank_results(
    results: Sequence[ScanResult], aggregation: Aggregation = "max"
) -> list[RankedDocument]:
    """Rank the results of one question, best first.

    Among equal ones the earlier comes first.
    """
    logits = [result.document_score(aggregation) for result in results]
    ranked = []
    for number, logit in best_first(logits):
        ranked.append(RankedDocument(number, logit, results[number]))
    return ranked
