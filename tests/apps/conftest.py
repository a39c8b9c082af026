"""Fixtures for the tests of what people touch."""

from tests.command_line import run

__all__ = ["run"]
