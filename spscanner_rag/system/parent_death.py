"""Ends a process with the one that started it."""

import os
import sys
from contextlib import suppress

_SET_PDEATHSIG = 1  # number of the option of Linux's prctl


def end_with_parent(parent: int) -> None:
    """Let Linux kill this process, even a stopped one, when the parent ends.

    Elsewhere it does nothing.

    Parameters
    ----------
    parent : int
        The parent's process number. If it has ended already, so does this process.
    """
    if not sys.platform.startswith("linux"):
        return
    import ctypes
    import signal

    with suppress(OSError, AttributeError):  # AttributeError: another C library
        ctypes.CDLL(None).prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before the call
        os._exit(1)
