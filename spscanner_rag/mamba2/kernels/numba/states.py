"""States of the state-space operator in compiled functions: matrices of rows and lanes in flat arrays.

A matrix is swept over the tokens of a run (see `numba_sweeps`) in parts that stay in registers.
"""

# numba compiles these functions: their types are those of their arguments.
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

import numpy as np

from spscanner_rag.mamba2.kernels.numba.compiling import CONTRACT, SUMS, compiled
from spscanner_rag.mamba2.kernels.numba.vectors import (
    LANES,
    flushed,
    load,
    product,
    repeated,
    spread,
    store,
    total,
)

ROWS = 8
"""Rows of a matrix that stay in registers over the tokens of a run; `sweep_part` is written for this number."""

SMALLEST = np.float32(1e-30)
"""Smaller numbers in a state are set to 0 now and then, before they become denormal numbers, with which a
processor computes many times slower."""

_ZERO = np.float32(0.0)


@compiled(CONTRACT, inline="always")
def rounded(size, unit):
    """The size of whole units."""
    return (size + unit - 1) // unit * unit


@compiled(CONTRACT)
def to_lanes(state, h, at, width):
    """Write a state, (headdim, d_state), as a matrix with headdim as its lanes."""
    for p in range(state.shape[0]):
        for n in range(state.shape[1]):
            h[at + n * width + p] = state[p, n]


@compiled(CONTRACT)
def from_lanes(h, at, width, factor, state):
    """Write such a matrix, times ``factor``, as a state."""
    for p in range(state.shape[0]):
        row = state[p]
        for n in range(len(row)):
            row[n] = h[at + n * width + p] * factor


@compiled(CONTRACT)
def to_rows(state, h, at, width):
    """Write a state as a matrix with headdim as its rows."""
    for p in range(state.shape[0]):
        h[at + p * width : at + p * width + state.shape[1]] = state[p]


@compiled(CONTRACT)
def from_rows(h, at, width, factor, state):
    """Write such a matrix, times ``factor``, as a state."""
    for p in range(state.shape[0]):
        row = state[p]
        for n in range(len(row)):
            row[n] = h[at + p * width + n] * factor


@compiled(SUMS)
def inner_product(h, at, width, matrix):
    """The inner product of the matrix at ``at`` with a state."""
    result = _ZERO
    for row in range(matrix.shape[0]):
        one, other = h[at + row * width : at + row * width + matrix.shape[1]], matrix[row]
        for lane in range(len(other)):
            result += one[lane] * other[lane]
    return result


@compiled(CONTRACT)
def scale_all(numbers, at, size, factor):
    """Multiply numbers; ``size`` is that of whole vectors."""
    for i in range(at, at + size, LANES):
        store(numbers, i, product(load(numbers, i), spread(factor)))


@compiled(CONTRACT)
def flush(numbers, at, size):
    """Set numbers nearer to 0 than `SMALLEST` to 0."""
    for i in range(at, at + size, LANES):
        store(numbers, i, flushed(load(numbers, i), SMALLEST))


@compiled(CONTRACT)
def sweep(h, at, rows, width, scale, entering, leaving, row_stride, lanes, out, token, direction, count):
    """One run, ``count`` tokens from ``token`` on, of the matrix at ``at``, (rows, width), first times ``scale``.

    Rows of ``entering`` and ``leaving`` are ``row_stride`` apart, those of ``lanes`` and ``out`` ``width``.
    """
    for row in range(0, rows, ROWS):
        for lane in range(0, width, LANES):
            sweep_part(
                h, at + row * width + lane, width, scale, entering, leaving, token * row_stride + row,
                direction * row_stride, lanes, out, token * width + lane, direction * width, count,
            )  # fmt: skip


@compiled(CONTRACT)
def sweep_part(h, at, width, scale, entering, leaving, row, row_step, lanes, out, lane, lane_step, count):
    """`sweep` for `ROWS` times `LANES` numbers, which stay in registers."""
    a = spread(scale)
    h0 = flushed(product(a, load(h, at)), SMALLEST)
    h1 = flushed(product(a, load(h, at + width)), SMALLEST)
    h2 = flushed(product(a, load(h, at + 2 * width)), SMALLEST)
    h3 = flushed(product(a, load(h, at + 3 * width)), SMALLEST)
    h4 = flushed(product(a, load(h, at + 4 * width)), SMALLEST)
    h5 = flushed(product(a, load(h, at + 5 * width)), SMALLEST)
    h6 = flushed(product(a, load(h, at + 6 * width)), SMALLEST)
    h7 = flushed(product(a, load(h, at + 7 * width)), SMALLEST)
    for _ in range(count):
        u = load(lanes, lane)
        h0 = total(h0, product(repeated(entering, row), u))
        h1 = total(h1, product(repeated(entering, row + 1), u))
        h2 = total(h2, product(repeated(entering, row + 2), u))
        h3 = total(h3, product(repeated(entering, row + 3), u))
        h4 = total(h4, product(repeated(entering, row + 4), u))
        h5 = total(h5, product(repeated(entering, row + 5), u))
        h6 = total(h6, product(repeated(entering, row + 6), u))
        h7 = total(h7, product(repeated(entering, row + 7), u))
        even = total(load(out, lane), product(repeated(leaving, row), h0))
        odd = product(repeated(leaving, row + 1), h1)
        even = total(even, product(repeated(leaving, row + 2), h2))
        odd = total(odd, product(repeated(leaving, row + 3), h3))
        even = total(even, product(repeated(leaving, row + 4), h4))
        odd = total(odd, product(repeated(leaving, row + 5), h5))
        even = total(even, product(repeated(leaving, row + 6), h6))
        odd = total(odd, product(repeated(leaving, row + 7), h7))
        store(out, lane, total(even, odd))
        row += row_step
        lane += lane_step
    store(h, at, h0)
    store(h, at + width, h1)
    store(h, at + 2 * width, h2)
    store(h, at + 3 * width, h3)
    store(h, at + 4 * width, h4)
    store(h, at + 5 * width, h5)
    store(h, at + 6 * width, h6)
    store(h, at + 7 * width, h7)
