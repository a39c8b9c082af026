"""LlamaIndex retriever of spscanner-rag: finds the best sentences of whole documents."""

try:
    import llama_index.core  # noqa: F401
except ImportError as error:
    raise ImportError('LlamaIndex is missing: pip install "spscanner-rag[llama-index]"') from error

from llama_index.retrievers.spscanner.base import SPScannerRetriever

__all__ = ["SPScannerRetriever"]
