"""The command line.

`app` puts the commands together; each command has its own module.
"""

from spscanner_rag.apps.cli.app import main

__all__ = ["main"]
