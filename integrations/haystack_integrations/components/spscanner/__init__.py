"""Haystack components of spscanner-rag: a ranker and an extractor of sentences."""

from spscanner_rag.retrieval import import_extra

import_extra("haystack", "haystack_integrations.components.spscanner", "haystack")

from haystack_integrations.components.spscanner.components import (  # noqa: E402
    SPScannerExtractor,
    SPScannerRanker,
)

__all__ = ["SPScannerExtractor", "SPScannerRanker"]
