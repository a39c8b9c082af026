"""Reading documents from files, and writing results to files: whole or not at all, or line by line."""

from spscanner_rag.files.reading import read

__all__ = ["read"]
