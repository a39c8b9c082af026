"""LlamaIndex retriever of spscanner-rag: finds the best sentences of whole documents."""

try:
    import llama_index.core  # noqa: F401
except ImportError as error:
    from spscanner_rag.retrieval import install_line

    raise ImportError(f"LlamaIndex is missing: {install_line('llama-index')}") from error

from llama_index.retrievers.spscanner.base import SPScannerRetriever

__all__ = ["SPScannerRetriever"]
