"""LlamaIndex node postprocessor of spscanner-rag: selects the best sentences."""

from spscanner_rag.retrieval import import_extra

import_extra("llama_index.core", "llama_index.postprocessor.spscanner", "llama-index")

from llama_index.postprocessor.spscanner.base import (  # noqa: E402
    SPScannerPostprocessor,
)
from llama_index.postprocessor.spscanner.scanned_node import (  # noqa: E402
    ScannedNode,
)

__all__ = ["SPScannerPostprocessor", "ScannedNode"]
