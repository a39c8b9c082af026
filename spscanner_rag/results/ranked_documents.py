"""Documents ranked for one question, each with its score and the sentences that earned it."""

from collections.abc import Sequence
from dataclasses import dataclass

from spscanner_rag.results.document_score import Aggregation, best_first
from spscanner_rag.results.scan_result import ScanResult
from spscanner_rag.results.sentences import Passage


@dataclass(frozen=True, slots=True)
class RankedDocument:
    """A document in a ranking.

    Attributes
    ----------
    number : int
        Its index among the documents that were given.
    score : float
        As `ScanResult.document_score` gives it; higher is better.
    result : ScanResult
        All its sentences, scored.
    """

    number: int
    score: float
    result: ScanResult

    @property
    def text(self) -> str:
        """The document."""
        return self.result.text

    def passages(self, top_k: float | str | None = 3) -> tuple[Passage, ...]:
        """Its best sentences, the best first; ``top_k`` is as for `ScanResult.select`."""
        return self.result.select(top_k, order="score")


def rank_results(results: Sequence[ScanResult], aggregation: Aggregation = "max") -> list[RankedDocument]:
    """Rank the results of one question, the best first; among equal scores the earlier first."""
    scores = [result.document_score(aggregation) for result in results]
    return [RankedDocument(number, score, results[number]) for number, score in best_first(scores)]
