"""Convolution and norms of a Mamba-2 layer, each in one pass over memory, compiled by numba.

A flat array holds the rows of a matrix, one for each token, at a distance of ``stride`` numbers, which is more
than their width where they are a part of a projection's output. Numbers are float32, or bfloat16 given as uint16;
sums are float32.
"""

# numba compiles these functions: their types are those of their arguments.
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

import numpy as np

from spscanner_rag.mamba2.kernels.numba.activations import silu, silu_of
from spscanner_rag.mamba2.kernels.numba.compiling import CONTRACT, SUMS, as_float32, as_kind_of, compiled
from spscanner_rag.mamba2.kernels.numba.vectors import LANES, load, product, store, total

_ONE, _ZERO = np.float32(1.0), np.float32(0.0)


@compiled(CONTRACT, keep=True)
def convolve_rows(inputs, stride, before, weight, bias, sequence, out, first, last):
    """Causal depthwise convolution and SiLU of the tokens ``first`` to ``last`` of one row of the batch.

    ``before`` (taps - 1, channels) has the inputs before token 0, ``weight`` is (taps, channels), float32, ``out``
    (tokens, channels). With ``sequence``, (tokens,) or empty, a token reads only tokens with its own number;
    ``before`` has number 0.
    """
    taps, channels = weight.shape
    vectors = channels - channels % LANES
    for token in range(first, last):
        tap = taps - 1  # the first that reads a token of the same sequence: numbers do not decrease
        while tap > 0:
            source = token + tap - taps
            if len(sequence) and sequence[token] != (sequence[source] if source >= 0 else 0):
                break
            tap -= 1
        for c in range(0, vectors, LANES):
            value = load(bias, c)
            for i in range(tap, taps):
                source = token + i - taps + 1
                if source >= 0:
                    value = total(
                        value, product(load(weight, i * channels + c), load(inputs, source * stride + c))
                    )
                else:
                    read = load(before, (source + taps - 1) * channels + c)
                    value = total(value, product(load(weight, i * channels + c), read))
            store(out, token * channels + c, silu_of(value))
        for c in range(vectors, channels):
            number = bias[c]
            for i in range(tap, taps):
                source = token + i - taps + 1
                value = inputs[source * stride + c] if source >= 0 else before[source + taps - 1, c]
                number += weight[i, c] * as_float32(value)
            out[token, c] = as_kind_of(out, silu(number))


@compiled(SUMS, keep=True)
def gated_norm_rows(y, z, z_stride, weight, groups, epsilon, norm_before_gate, out, first, last):
    """RMS norm with a SiLU gate of the rows ``first`` to ``last``, each of ``groups`` parts normed by itself.

    ``y`` and ``out`` are (rows, d_inner), ``weight`` is (d_inner,), float32.
    """
    d_inner = len(weight)
    width = d_inner // groups
    vectors = d_inner - d_inner % LANES
    gate, value = np.empty(d_inner, np.float32), np.empty(d_inner, np.float32)
    for row in range(first, last):
        at, z_at = row * d_inner, row * z_stride
        for c in range(0, vectors, LANES):
            gates = silu_of(load(z, z_at + c))
            store(gate, c, gates)
            store(value, c, load(y, at + c) if norm_before_gate else product(load(y, at + c), gates))
        for c in range(vectors, d_inner):
            gate[c] = silu(as_float32(z[z_at + c]))
            value[c] = as_float32(y[row, c]) * (_ONE if norm_before_gate else gate[c])
        for start in range(0, d_inner, width):
            part, factors = value[start : start + width], weight[start : start + width]
            squares = _ZERO
            for c in range(width):
                squares += part[c] * part[c]
            scale = np.float32(_ONE / np.sqrt(squares / np.float32(width) + epsilon))
            for c in range(width):
                part[c] *= scale * factors[c]
        for c in range(0, vectors, LANES):
            values = load(value, c)
            store(out, at + c, product(values, load(gate, c)) if norm_before_gate else values)
        for c in range(vectors, d_inner):
            out[row, c] = as_kind_of(out, value[c] * (gate[c] if norm_before_gate else _ONE))


@compiled(SUMS, keep=True)
def norm_rows(x, weight, epsilon, out, first, last):
    """RMS norm of the rows ``first`` to ``last`` of ``x``, (rows, size)."""
    size = len(weight)
    for row in range(first, last):
        read, written = x[row], out[row]
        squares = _ZERO
        for c in range(size):
            squares += as_float32(read[c]) * as_float32(read[c])
        scale = np.float32(_ONE / np.sqrt(squares / np.float32(size) + epsilon))
        for c in range(size):
            written[c] = as_kind_of(out, as_float32(read[c]) * scale * weight[c])
