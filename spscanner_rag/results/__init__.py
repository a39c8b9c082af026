"""What a scan gives: every sentence with its score, and what is selected of them."""

from spscanner_rag.results.scan_result import Passage, ScanResult, ScoredSentence

__all__ = ["Passage", "ScanResult", "ScoredSentence"]
