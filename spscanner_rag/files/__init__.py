"""Reads documents from files, and writes results: complete files or nothing, or line by line."""

from spscanner_rag.files.reading import read

__all__ = ["read"]
