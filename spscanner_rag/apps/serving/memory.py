"""Freed memory goes back to the system: glibc would keep what each of many large requests left in its heaps."""

import asyncio
import ctypes
import sys
from pathlib import Path

GROWTH = 64 * 2**20
"""Memory that a server may keep for its next requests."""

_EVERY = 1.0  # seconds
_PAGE = 4096  # bytes; of some systems more, and then less is kept


async def give_back_memory() -> None:
    """Look at the memory of the process until cancelled; where the system or its C library is another, return."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    least = _resident()
    while trim and least:
        await asyncio.sleep(_EVERY)
        now = _resident()
        if now > least + GROWTH:
            await asyncio.to_thread(trim, 0)
            least = _resident()
        least = min(least, now)


def _resident() -> int:
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE
    except (OSError, ValueError):
        return 0
