"""Fixtures for the tests of the commands of the workshop."""

from tests.command_line import checkpoint, document, run, scan

__all__ = ["checkpoint", "document", "run", "scan"]
