"""Checks an answer against its documents: its quotes word by word, and its claims."""

from spscanner_rag.apps.verifying.verify import verify

__all__ = ["verify"]
