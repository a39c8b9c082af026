"""The result of a scan: sentences with their scores, and passages selected of them."""

from spscanner_rag.results.passages import Passage
from spscanner_rag.results.scan_result import ScanResult
from spscanner_rag.results.selection import Selection
from spscanner_rag.results.sentences import ScoredSentence

__all__ = ["Passage", "ScanResult", "ScoredSentence", "Selection"]
