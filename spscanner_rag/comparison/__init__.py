"""Several retrievers on one question and document, side by side."""

from spscanner_rag.comparison.comparison import Comparison, compare
from spscanner_rag.comparison.retrievals import Pick, Retrieval

__all__ = ["Comparison", "Pick", "Retrieval", "compare"]
