"""LangChain retriever and compressor of spscanner-rag: the sentences that matter, with score and position."""

try:
    import langchain_core  # noqa: F401
except ImportError as error:
    from spscanner_rag.retrieval import install_line

    raise ImportError(f"langchain_spscanner needs langchain-core: {install_line('langchain')}") from error

from langchain_spscanner.compressor import SPScannerCompressor
from langchain_spscanner.retriever import SPScannerRetriever

__all__ = ["SPScannerCompressor", "SPScannerRetriever"]
