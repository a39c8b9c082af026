"""LlamaIndex retriever of spscanner-rag: the best sentences of whole documents."""

from spscanner_rag.retrieval import import_extra

import_extra("llama_index.core", "llama_index.retrievers.spscanner", "llama-index")

from llama_index.retrievers.spscanner.base import SPScannerRetriever  # noqa: E402

__all__ = ["SPScannerRetriever"]
