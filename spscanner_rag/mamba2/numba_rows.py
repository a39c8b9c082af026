"""Rows of numbers as vectors of float32, in functions that numba compiles: read, written, and SiLU's parts."""

# numba compiles these functions: their types are those of their arguments.
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

import numpy as np

from spscanner_rag.mamba2.numba_functions import (
    _E1,
    _E2,
    _E3,
    _E4,
    _E5,
    _E6,
    _EXP_MOST,
    _LN2_HIGH,
    _LN2_LOW,
    _LOG2_E,
    _compiled,
    as_float32,
    as_kind_of,
)
from spscanner_rag.mamba2.numba_vectors import (
    LANES,
    limited,
    load,
    power_of_two,
    product,
    quotient,
    spread,
    store,
    total,
    whole,
)

_ONE, _ZERO, _MINUS = np.float32(1.0), np.float32(0.0), np.float32(-1.0)
_CONTRACT = {"contract", "nsz"}


@_compiled(_CONTRACT)
def widen(numbers, at, stride, size, out, out_stride, count):
    """Rows of a flat array as float32."""
    whole = size // LANES * LANES
    for t in range(count):
        for n in range(0, whole, LANES):
            store(out, t * out_stride + n, load(numbers, at + n))
        for n in range(whole, size):
            out[t * out_stride + n] = as_float32(numbers[at + n])
        at += stride


@_compiled(_CONTRACT)
def narrow(numbers, stride, size, out, at, out_stride, count):
    """Rows as the kind of number of a flat array."""
    whole = size // LANES * LANES
    for t in range(count):
        for n in range(0, whole, LANES):
            store(out, at + n, load(numbers, t * stride + n))
        for n in range(whole, size):
            out[at + n] = as_kind_of(out, numbers[t * stride + n])
        at += out_stride


@_compiled(_CONTRACT)
def padded(matrix, width):
    """A matrix with rows of ``width`` numbers, flat."""
    out = np.zeros(matrix.shape[0] * width, np.float32)
    for row in range(matrix.shape[0]):
        out[row * width : row * width + matrix.shape[1]] = matrix[row]
    return out


@_compiled(_CONTRACT)
def clear(numbers, at, size):
    """Set numbers to 0; ``size`` is that of whole vectors."""
    for i in range(at, at + size, LANES):
        store(numbers, i, spread(_ZERO))


@_compiled(_CONTRACT, inline="always")
def sigmoid(x):
    """1 / (1 + exp(-x)) of a vector, as `numba_functions.exponential` computes it for a number."""
    x = limited(product(x, spread(_MINUS)), _EXP_MOST)
    power = whole(product(x, spread(_LOG2_E)))
    x = total(x, product(power, spread(np.float32(-_LN2_HIGH))))
    x = total(x, product(power, spread(np.float32(-_LN2_LOW))))
    series = total(product(spread(_E1), x), spread(_E2))
    series = total(product(series, x), spread(_E3))
    series = total(product(series, x), spread(_E4))
    series = total(product(series, x), spread(_E5))
    series = total(product(series, x), spread(_E6))
    series = total(total(product(product(series, x), x), x), spread(_ONE))
    return quotient(spread(_ONE), total(product(series, power_of_two(power)), spread(_ONE)))


@_compiled(_CONTRACT, inline="always")
def slope_of_silu(x, share):
    """The derivative of SiLU at a vector whose sigmoid is ``share``."""
    rest = total(spread(_ONE), product(share, spread(_MINUS)))
    return product(share, total(spread(_ONE), product(x, rest)))
