"""How questions are asked of corpora, and what is measured."""

from collections.abc import Sequence
from dataclasses import dataclass

from spscanner_lab.evaluation.first_stage import NO_STAGE
from spscanner_lab.evidence.metrics import CUTOFFS
from spscanner_rag.results.document_scores import Aggregation


@dataclass(frozen=True, kw_only=True)
class EvaluationPlan:
    """How questions are asked of corpora, and what is measured.

    Parameters
    ----------
    first_stages : sequence of str
        "none", which reads everything, "bm25", or retrievers.
    read_documents : int
        The most documents that are read after a first stage.
    among : int, optional
        Documents that a question is asked of, the hardest; None for all.
    characters : int, optional
        The most characters of a document.
    cutoffs : sequence of int
        The numbers of units k of the metrics of evidence.
    aggregation : str
        How the scores of units become a document's score.
    unit : str, optional
        What documents are cut into, whatever the settings say; None for their units.
    exact : bool
        Whether evidence is also measured by characters.
    """

    first_stages: Sequence[str] = (NO_STAGE,)
    read_documents: int = 10
    among: int | None = None
    characters: int | None = None
    cutoffs: Sequence[int] = CUTOFFS
    aggregation: Aggregation = "max"
    unit: str | None = None
    exact: bool = False
