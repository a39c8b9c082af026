"""LlamaIndex node postprocessor of spscanner-rag: selects the best sentences of retrieved nodes."""

try:
    import llama_index.core  # noqa: F401
except ImportError as error:
    from spscanner_rag.retrieval import install_line

    raise ImportError(f"LlamaIndex is missing: {install_line('llama-index')}") from error

from llama_index.postprocessor.spscanner.base import SPScannerPostprocessor
from llama_index.postprocessor.spscanner.nodes import ScannedNode

__all__ = ["SPScannerPostprocessor", "ScannedNode"]
