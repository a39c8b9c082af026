"""Reads documents from files of several formats, and writes a result to a file."""

from spscanner_rag.files.reading import read

__all__ = ["read"]
