"""LangChain retriever and compressor of spscanner-rag: the sentences that matter, with score and position."""

try:
    import langchain_core  # noqa: F401
except ImportError as error:
    from spscanner_rag.retrieval import install_line

    raise ImportError(f"langchain_spscanner needs langchain-core: {install_line('langchain')}") from error

from typing import Any

from langchain_spscanner.compressor import SPScannerCompressor
from langchain_spscanner.retriever import SPScannerRetriever

__all__ = ["SPScannerCompressor", "SPScannerRetriever", "SPScannerToolCompressionMiddleware"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a class
    if name == "SPScannerToolCompressionMiddleware":  # needs langchain, which the other classes do not
        from langchain_spscanner.middleware import SPScannerToolCompressionMiddleware

        return SPScannerToolCompressionMiddleware
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
