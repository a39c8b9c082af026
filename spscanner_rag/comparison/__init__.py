"""Several retrievers asked one question of one document, side by side."""

from spscanner_rag.comparison.comparison import Comparison, Pick, Retrieval, compare

__all__ = ["Comparison", "Pick", "Retrieval", "compare"]
