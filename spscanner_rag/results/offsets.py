"""Offsets in the units in which other languages count: UTF-16, and bytes of UTF-8."""

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

Offsets = Literal["characters", "utf16", "bytes"]


def check_offsets(offsets: Any, name: str = "offsets") -> Offsets:  # noqa: ANN401 - checked here
    """Return the unit of offsets, or raise ``ValueError`` for an unknown one."""
    if offsets not in get_args(Offsets):
        raise ValueError(
            f"{name}: got {offsets!r}; expected one of {', '.join(get_args(Offsets))}"
        )
    checked: Offsets = offsets
    return checked


def convert_offsets(
    text: str, offsets: NDArray[np.integer[Any]], unit: Offsets
) -> NDArray[np.int64]:
    """Convert offsets in characters to UTF-16 units, or to bytes of UTF-8: (n,).

    A lone surrogate, which UTF-8 cannot encode, counts as the three bytes of U+FFFD,
    which replaces it.

    Examples
    --------
    >>> convert_offsets("naïve 🙂!", np.array([3, 7]), "utf16").tolist()
    [3, 8]
    >>> convert_offsets("naïve 🙂!", np.array([3, 7]), "bytes").tolist()
    [4, 11]
    """
    check_offsets(unit)
    if unit == "characters" or text.isascii():
        return offsets.astype(np.int64)
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    larger_than = (0xFFFF,) if unit == "utf16" else (0x7F, 0x7FF, 0xFFFF)
    widths = np.ones(len(codes), np.int64)
    for code in larger_than:
        widths += codes > code
    converted = np.concatenate([[0], np.cumsum(widths)])
    return np.asarray(converted[offsets], np.int64)
