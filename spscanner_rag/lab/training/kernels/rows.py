"""Rows of numbers of either kind in compiled functions: read as float32, and written."""

# numba compiles these functions: their types are those of their arguments.
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

import numpy as np

from spscanner_rag.mamba2.kernels.numba.vectors import (
    CONTRACT,
    LANES,
    as_float32,
    as_kind_of,
    compiled,
    load,
    spread,
    store,
)

_ZERO = np.float32(0.0)


@compiled(CONTRACT)
def widen(numbers, at, stride, size, out, out_stride, count):
    """Rows of a flat array as float32."""
    whole = size // LANES * LANES
    for t in range(count):
        for n in range(0, whole, LANES):
            store(out, t * out_stride + n, load(numbers, at + n))
        for n in range(whole, size):
            out[t * out_stride + n] = as_float32(numbers[at + n])
        at += stride


@compiled(CONTRACT)
def narrow(numbers, stride, size, out, at, out_stride, count):
    """Rows as the kind of number of a flat array."""
    whole = size // LANES * LANES
    for t in range(count):
        for n in range(0, whole, LANES):
            store(out, at + n, load(numbers, t * stride + n))
        for n in range(whole, size):
            out[at + n] = as_kind_of(out, numbers[t * stride + n])
        at += out_stride


@compiled(CONTRACT)
def padded(matrix, width):
    """A matrix with rows of ``width`` numbers, flat."""
    out = np.zeros(matrix.shape[0] * width, np.float32)
    for row in range(matrix.shape[0]):
        out[row * width : row * width + matrix.shape[1]] = matrix[row]
    return out


@compiled(CONTRACT)
def clear(numbers, at, size):
    """Set numbers to 0; ``size`` is that of whole vectors."""
    for i in range(at, at + size, LANES):
        store(numbers, i, spread(_ZERO))
