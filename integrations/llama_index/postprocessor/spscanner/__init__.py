"""LlamaIndex node postprocessor of spscanner-rag: selects the best sentences of retrieved nodes."""

from spscanner_rag.retrieval import needed

needed("llama_index.core", "llama_index.postprocessor.spscanner", "llama-index")

from llama_index.postprocessor.spscanner.base import SPScannerPostprocessor  # noqa: E402
from llama_index.postprocessor.spscanner.nodes import ScannedNode  # noqa: E402

__all__ = ["SPScannerPostprocessor", "ScannedNode"]
