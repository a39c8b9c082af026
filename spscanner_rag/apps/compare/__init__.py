"""Several retrievers on one question and document, side by side."""

from spscanner_rag.apps.compare.comparison import Comparison, compare
from spscanner_rag.apps.compare.retrievals import Pick, Retrieval

__all__ = ["Comparison", "Pick", "Retrieval", "compare"]
