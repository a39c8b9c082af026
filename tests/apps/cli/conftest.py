"""Fixtures for the tests of the command line."""

from tests.command_line import checkpoint, document, run, scan

__all__ = ["checkpoint", "document", "run", "scan"]
