"""Let forked children of a process that has used torch compute, where they would otherwise wait for ever."""

import os
from functools import cache

import torch

_alone = False  # whether this process was forked from one in which torch had computed


@cache
def compute_in_forks() -> None:
    """Let processes forked from this one compute with one thread; to be called before torch computes.

    OpenMP keeps its threads for the next loop; a child does not have them, and would wait for them for ever.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_compute_alone)


def computes_alone() -> bool:
    """True if this process must not use more than one thread."""
    return _alone


def _compute_alone() -> None:
    global _alone
    _alone = True
    if torch.get_num_threads() > 1:
        torch.set_num_threads(1)
