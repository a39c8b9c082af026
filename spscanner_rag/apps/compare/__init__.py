"""Compares several retrievers on one question and document, side by side."""

from spscanner_rag.apps.compare.comparison import compare
from spscanner_rag.apps.compare.notebook import Comparison
from spscanner_rag.apps.compare.results import Pick, Retrieval

__all__ = ["Comparison", "Pick", "Retrieval", "compare"]
