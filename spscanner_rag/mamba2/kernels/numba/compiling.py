"""How the functions of ``backend="numba"`` are compiled, and the kinds of numbers that they read and write."""

# numba compiles these functions: their types are those of their arguments.
# ruff: noqa: ANN001, ANN201, ANN202

from __future__ import annotations

import numpy as np
from numba import njit, types
from numba.extending import overload

CONTRACT = {"contract", "nsz"}
"""A product and a sum may become one instruction; 0 has no sign."""

SUMS = CONTRACT | {"reassoc"}
"""Sums in any order too, so that they can be vectors."""


def compiled(flags, *, inline="never", keep=False):
    """Compile a function when it is first called; ``keep`` the code on disk for the processes that follow."""

    def compile_function(function):
        options = {"nogil": True, "error_model": "numpy", "fastmath": flags, "inline": inline}
        try:
            return njit(function, cache=keep, **options)
        except RuntimeError:  # neither this folder nor the user's cache can be written
            return njit(function, **options)

    return compile_function


def as_float32(number):
    """A number of either kind as float32."""
    raise NotImplementedError("compiled functions alone call this")


def as_kind_of(array, number):
    """A float32 number as the kind of number that the array has."""
    raise NotImplementedError("compiled functions alone call this")


@overload(as_float32, inline="always")
def _as_float32(number):
    if number == types.float32:
        return lambda number: number
    return lambda number: np.uint32(np.uint32(number) << np.uint32(16)).view(np.float32)


@overload(as_kind_of, inline="always")
def _as_kind_of(array, number):
    if array.dtype == types.float32:
        return lambda array, number: number

    def rounded(array, number):  # to the nearest bfloat16, ties to even
        bits = np.float32(number).view(np.uint32)
        odd = (bits >> np.uint32(16)) & np.uint32(1)
        return np.uint16(np.uint32(bits + np.uint32(0x7FFF) + odd) >> np.uint32(16))

    return rounded
