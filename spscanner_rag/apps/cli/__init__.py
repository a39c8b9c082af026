"""The command line.

`app` puts the commands together; each command has its own module.
"""

import sys
from collections.abc import Sequence

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program, and return its exit code.

    The commands are imported here, so that Ctrl-C is one line from the beginning.

    Parameters
    ----------
    arguments : sequence of str, optional
        Default: those of the command line.
    """
    try:
        from spscanner_rag.apps.cli import app
    except KeyboardInterrupt:
        if sys.stderr is not None:
            sys.stderr.write("spscanner: interrupted\n")
        return INTERRUPTED
    return app.main(arguments)


__all__ = ["main"]
