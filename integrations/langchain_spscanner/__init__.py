"""LangChain classes of spscanner-rag, which find the sentences that matter."""

from typing import Any

from spscanner_rag.retrieval import import_extra

import_extra("langchain_core", "langchain_spscanner", "langchain")

from langchain_spscanner.compressor import SPScannerCompressor  # noqa: E402
from langchain_spscanner.retriever import SPScannerRetriever  # noqa: E402

__all__ = [
    "SPScannerCompressor",
    "SPScannerRetriever",
    "SPScannerToolCompressionMiddleware",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a class
    # It needs langchain, which the other classes do not.
    if name == "SPScannerToolCompressionMiddleware":
        from langchain_spscanner.middleware import SPScannerToolCompressionMiddleware

        return SPScannerToolCompressionMiddleware
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
