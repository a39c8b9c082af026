"""LlamaIndex retriever of spscanner-rag.

Version 0.1 has no class here yet: call `spscanner_rag.Scanner` directly.
"""

__all__: list[str] = []
