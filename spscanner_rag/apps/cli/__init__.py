"""The command line: `app` puts it together, and each command has a module of its own."""

from spscanner_rag.apps.cli.app import main

__all__ = ["main"]
