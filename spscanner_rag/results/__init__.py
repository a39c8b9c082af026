"""The result of a scan: every sentence with its score, and the passages selected from them."""

from spscanner_rag.results.scan_result import ScanResult
from spscanner_rag.results.selection import Selection
from spscanner_rag.results.sentences import Passage, ScoredSentence

__all__ = ["Passage", "ScanResult", "ScoredSentence", "Selection"]
