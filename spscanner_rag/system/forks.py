"""Let processes that were forked from this one compute.

OpenMP keeps its threads for the next loop. A forked child does not have them, and would
wait for them forever.
"""

import os
import sys
from functools import cache

# Whether this process was forked from one in which torch had computed.
_computes_alone = False


@cache
def compute_in_forks() -> None:
    """Let processes forked from this one compute with one thread.

    Call this before torch computes.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_compute_alone)


def computes_alone() -> bool:
    """Return whether this process must not use more than one thread."""
    return _computes_alone


def _compute_alone() -> None:
    global _computes_alone
    _computes_alone = True
    # It was imported if it has computed; numpy's threads survive a fork.
    torch = sys.modules.get("torch")
    if torch is not None and torch.get_num_threads() > 1:
        torch.set_num_threads(1)
