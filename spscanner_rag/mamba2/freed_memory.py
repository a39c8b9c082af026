"""Memory that one layer frees and the next one needs again stays with the process."""

import torch

_BYTES = 32 * 2**20 - 2**16
"""Just below the largest block from which glibc learns (`DEFAULT_MMAP_THRESHOLD_MAX`)."""


def keep_freed_memory() -> None:
    """Have glibc's malloc keep freed blocks of up to 32 MB, and up to 64 MB of them, for the next allocation.

    At its first settings it returns the memory of every large tensor to the system, which has to clear it anew
    page by page for the next one: a third of a scan's time on a CPU. It takes the size of a block that is freed
    as the size of those that will be needed again; so one is freed here that nobody ever wrote to. No memory is
    used, a call costs microseconds, and other allocators do not mind.
    """
    block = torch.empty(_BYTES, dtype=torch.uint8)
    del block
