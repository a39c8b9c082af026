"""LlamaIndex retriever of spscanner-rag: finds the best sentences of whole documents."""

from llama_index.postprocessor.spscanner import (
    ScannedNode,
)  # says what to install where LlamaIndex is missing
from llama_index.retrievers.spscanner.base import SPScannerRetriever

__all__ = ["SPScannerRetriever", "ScannedNode"]
