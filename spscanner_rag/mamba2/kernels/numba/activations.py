"""Exponentials and SiLU, compiled by numba: of numbers, and of vectors."""

# numba compiles these functions: their types are those of their arguments.
# ruff: noqa: ANN001, ANN201, ANN202

from __future__ import annotations

import numpy as np

from spscanner_rag.mamba2.kernels.numba.compiling import CONTRACT, compiled
from spscanner_rag.mamba2.kernels.numba.vectors import (
    TO_INTEGER,
    between,
    power_of_rounded,
    product,
    quotient,
    spread,
    total,
)

_LOG2_E = np.float32(1.44269504)
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_EXP_MOST = np.float32(87.0)
_E1, _E2, _E3 = np.float32(1.9875691500e-4), np.float32(1.3981999507e-3), np.float32(8.3334519073e-3)
_E4, _E5, _E6 = np.float32(4.1665795894e-2), np.float32(1.6666665459e-1), np.float32(5.0000001201e-1)
_TO_INTEGER = np.float32(TO_INTEGER)
_HALF, _ONE, _MINUS_ONE = np.float32(0.5), np.float32(1.0), np.float32(-1.0)


@compiled(CONTRACT, inline="always")
def exponential(x):
    """exp(x) between -87 and 87, in operations that vectorize; relative error below 3e-7 (Cephes, expf)."""
    x = min(max(x, -_EXP_MOST), _EXP_MOST)
    power = np.floor(x * _LOG2_E + _HALF)
    x = x - power * _LN2_HIGH
    x = x - power * _LN2_LOW
    series = ((((_E1 * x + _E2) * x + _E3) * x + _E4) * x + _E5) * x + _E6
    series = series * x * x + x + _ONE
    return series * np.int32((np.int32(power) + np.int32(127)) << np.int32(23)).view(np.float32)


@compiled(CONTRACT, inline="always")
def silu(x):
    """SiLU: x / (1 + exp(-x))."""
    return x / (_ONE + exponential(-x))


@compiled(CONTRACT, inline="always")
def silu_of(x):
    """`silu` of a vector."""
    return quotient(x, _one_and_power(x))


@compiled(CONTRACT, inline="always")
def sigmoid_of(x):
    """1 / (1 + exp(-x)) of a vector."""
    return quotient(spread(_ONE), _one_and_power(x))


@compiled(CONTRACT, inline="always")
def slope_of_silu(x, share):
    """The derivative of SiLU at a vector whose sigmoid is ``share``."""
    rest = total(spread(_ONE), product(share, spread(_MINUS_ONE)))
    return product(share, total(spread(_ONE), product(x, rest)))


@compiled(CONTRACT, inline="always")
def _one_and_power(x):
    """1 + exp(-x) of a vector, as `exponential` computes it for a number."""
    power = between(product(x, spread(_MINUS_ONE)), spread(-_EXP_MOST), spread(_EXP_MOST))
    rounded = total(product(power, spread(_LOG2_E)), spread(_TO_INTEGER))
    integers = total(rounded, spread(-_TO_INTEGER))
    power = total(power, product(integers, spread(-_LN2_HIGH)))
    power = total(power, product(integers, spread(-_LN2_LOW)))
    series = total(product(spread(_E1), power), spread(_E2))
    series = total(product(series, power), spread(_E3))
    series = total(product(series, power), spread(_E4))
    series = total(product(series, power), spread(_E5))
    series = total(product(series, power), spread(_E6))
    series = total(total(product(product(series, power), power), power), spread(_ONE))
    return total(product(series, power_of_rounded(rounded)), spread(_ONE))
