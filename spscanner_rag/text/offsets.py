"""Offsets of a text as other languages count them: Python counts characters."""

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

Offsets = Literal["characters", "utf16", "bytes"]


def check_offsets(offsets: Any, name: str = "offsets") -> Offsets:  # noqa: ANN401 - checked here
    """The way of counting; ``ValueError`` for another."""
    if offsets not in get_args(Offsets):
        raise ValueError(f"{name}: got {offsets!r}; expected one of {', '.join(get_args(Offsets))}")
    known: Offsets = offsets
    return known


def counted(text: str, offsets: NDArray[np.integer[Any]], unit: Offsets) -> NDArray[np.int64]:
    """Offsets in characters as offsets in UTF-16 units, or in bytes of UTF-8: (n,).

    A lone surrogate, which UTF-8 cannot hold, has the three bytes of U+FFFD, which stands for it there.
    """
    check_offsets(unit)
    if unit == "characters" or text.isascii():
        return offsets.astype(np.int64)
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    larger = (0xFFFF,) if unit == "utf16" else (0x7F, 0x7FF, 0xFFFF)
    widths = 1 + sum((codes > code).astype(np.int64) for code in larger)
    return np.asarray(np.concatenate([[0], np.cumsum(widths)])[offsets], np.int64)
