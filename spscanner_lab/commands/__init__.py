"""The commands of the workshop, which `add_commands` adds to ``spscanner``."""

from spscanner_lab.commands.register import add_commands

__all__ = ["add_commands"]
