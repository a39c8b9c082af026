"""Keeps texts of files and vectors of sentences for later commands."""

from spscanner_rag.apps.cache.read_cache import ReadCache, cache_folder, user_cache

__all__ = ["ReadCache", "cache_folder", "user_cache"]
