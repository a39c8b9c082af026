"""A Model Context Protocol server: agents ask documents, and get the sentences."""

from spscanner_rag.apps.mcp.library import Library
from spscanner_rag.apps.mcp.server import create_server

__all__ = ["Library", "create_server"]
