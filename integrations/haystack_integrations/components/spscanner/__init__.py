"""Haystack components of spscanner-rag: a ranker of documents, and an extractor of the sentences that matter."""

try:
    import haystack  # noqa: F401
except ImportError as error:
    from spscanner_rag.retrieval import install_line

    raise ImportError(
        f"haystack_integrations.components.spscanner needs haystack-ai: {install_line('haystack')}"
    ) from error

from haystack_integrations.components.spscanner.components import SPScannerExtractor, SPScannerRanker

__all__ = ["SPScannerExtractor", "SPScannerRanker"]
