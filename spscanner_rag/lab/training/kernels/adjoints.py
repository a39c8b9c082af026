"""Gradients of convolution and norms, each in one pass over memory, compiled by numba.

Each function recomputes what it needs from the inputs of its counterpart in `steps`, whose arguments it
shares. Flat arrays and kinds of numbers are as there.
"""

# numba compiles these functions: their types are those of their arguments.
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

import numpy as np

from spscanner_rag.lab.training.kernels.rows import narrow, padded, widen
from spscanner_rag.mamba2.kernels.numba.vectors import (
    CONTRACT,
    LANES,
    SUMS,
    as_float32,
    as_kind_of,
    compiled,
    load,
    one_and_power,
    product,
    quotient,
    spread,
    store,
    total,
)

_ONE, _ZERO = np.float32(1.0), np.float32(0.0)


@compiled(CONTRACT, keep=True)
def convolve_rows_adjoint(
    inputs, stride, before, weight, bias, sequence, d_out, d_stride, d_inputs, d_before, d_weight, d_bias
):
    """The gradients of `convolve_rows` for one row of the batch, from ``d_out``, flat; float32 sums are added to.

    Written: ``d_inputs`` (tokens, channels); added to: ``d_before``, ``d_weight`` (taps, channels), ``d_bias``.
    """
    taps, channels = weight.shape
    tokens, size = len(d_inputs), (channels + LANES - 1) // LANES * LANES
    earlier, written = before.reshape(-1), d_inputs.reshape(-1)
    # Rows are whole vectors. The last ones of ``read`` and ``recent`` stay 0: they are for other sequences.
    factors, added = padded(weight, size), np.zeros(size, np.float32)
    added[:channels] = bias
    read = np.zeros((taps + 1) * size, np.float32)  # inputs of the token and those before it, by token % taps
    recent = np.zeros((taps + 1) * size, np.float32)  # gradients before SiLU of the token and those after it
    above, below = np.zeros(size, np.float32), np.zeros(size, np.float32)
    of_weight, of_bias = np.zeros(taps * size, np.float32), np.zeros(size, np.float32)
    sources, later = np.empty(taps, np.int64), np.empty(taps, np.int64)  # where the rows begin
    for token in range(tokens - 1, -1, -1):
        own = sequence[token] if len(sequence) else 0
        for tap in range(taps):
            source = token + tap - taps + 1
            slot = (source + taps) % taps * size
            if tap == 0 or token == tokens - 1:
                if source >= 0:
                    widen(inputs, source * stride, 0, channels, read[slot : slot + size], 0, 1)
                else:
                    widen(
                        earlier, (source + taps - 1) * channels, 0, channels, read[slot : slot + size], 0, 1
                    )
            other = sequence[max(source, 0)] if len(sequence) and source >= 0 else 0
            sources[tap] = slot if other == own else taps * size
            ahead = token + taps - 1 - tap
            follows = ahead < tokens and (not len(sequence) or sequence[min(ahead, tokens - 1)] == own)
            later[tap] = ahead % taps * size if follows else taps * size
        widen(d_out, token * d_stride, 0, channels, above, 0, 1)
        here = token % taps * size
        for c in range(0, size, LANES):
            out = load(added, c)
            for tap in range(taps):
                out = total(out, product(load(factors, tap * size + c), load(read, sources[tap] + c)))
            slope = product(load(above, c), slope_of_silu(out, sigmoid_of(out)))
            store(recent, here + c, slope)
            store(of_bias, c, total(load(of_bias, c), slope))
            back = spread(_ZERO)
            for tap in range(taps):
                at = tap * size + c
                store(of_weight, at, total(load(of_weight, at), product(slope, load(read, sources[tap] + c))))
                back = total(back, product(load(factors, at), load(recent, later[tap] + c)))
            store(below, c, back)
        narrow(below, 0, channels, written, token * channels, 0, 1)
        for tap in range(taps - 1 - token):
            if own == 0:
                for c in range(channels):
                    d_before[token + tap, c] += factors[tap * size + c] * recent[here + c]
    for c in range(channels):
        d_bias[c] += of_bias[c]
        for tap in range(taps):
            d_weight[tap, c] += of_weight[tap * size + c]


@compiled(SUMS, keep=True)
def gated_norm_rows_adjoint(
    y, z, z_stride, weight, groups, epsilon, norm_before_gate, d_out, dy, dz, d_weight, first, last
):
    """The gradients of `gated_norm_rows` for the rows ``first`` to ``last``, from ``d_out``, (rows, d_inner).

    Written are ``dy`` and ``dz``, (rows, d_inner); added to is ``d_weight``, (d_inner,), float32.
    """
    d_inner = len(weight)
    width, size = d_inner // groups, (d_inner + LANES - 1) // LANES * LANES
    ys, above, into_y, into_z = y.reshape(-1), d_out.reshape(-1), dy.reshape(-1), dz.reshape(-1)
    number, gate, bend = np.zeros(size, np.float32), np.zeros(size, np.float32), np.zeros(size, np.float32)
    up, value, slope = np.zeros(size, np.float32), np.zeros(size, np.float32), np.zeros(size, np.float32)
    factors = np.zeros(size, np.float32)
    factors[:d_inner] = weight
    for row in range(first, last):
        widen(ys, row * d_inner, 0, d_inner, number, 0, 1)
        widen(z, row * z_stride, 0, d_inner, gate, 0, 1)
        widen(above, row * d_inner, 0, d_inner, up, 0, 1)
        for c in range(0, size, LANES):
            raw = load(gate, c)
            share = sigmoid_of(raw)
            opened = product(raw, share)
            store(gate, c, opened)
            store(bend, c, slope_of_silu(raw, share))
            before, after = (spread(_ONE), opened) if norm_before_gate else (opened, spread(_ONE))
            store(value, c, product(load(number, c), before))
            store(slope, c, product(load(up, c), after))
        for start in range(0, d_inner, width):
            part, rise = value[start : start + width], slope[start : start + width]
            scales, into = weight[start : start + width], d_weight[start : start + width]
            squares, along = _ZERO, _ZERO
            for c in range(width):
                squares += part[c] * part[c]
                along += part[c] * rise[c] * scales[c]
            scale = np.float32(_ONE / np.sqrt(squares / np.float32(width) + epsilon))
            shift = along * scale * scale * scale / np.float32(width)
            for c in range(width):
                into[c] += rise[c] * part[c] * scale
                rise[c] = rise[c] * scales[c] * scale - part[c] * shift  # the gradient before the norm
                part[c] *= scale  # after the norm, without its weight
        for c in range(0, size, LANES):
            if norm_before_gate:
                of_gate = product(product(load(up, c), load(value, c)), load(factors, c))
            else:
                of_gate = product(load(slope, c), load(number, c))
                store(slope, c, product(load(slope, c), load(gate, c)))
            store(bend, c, product(of_gate, load(bend, c)))
        narrow(slope, 0, d_inner, into_y, row * d_inner, 0, 1)
        narrow(bend, 0, d_inner, into_z, row * d_inner, 0, 1)


@compiled(SUMS, keep=True)
def norm_rows_adjoint(x, weight, epsilon, d_out, dx, d_weight, first, last):
    """The gradients of `norm_rows` for the rows ``first`` to ``last``, from ``d_out``, (rows, size).

    Written is ``dx``, (rows, size); added to is ``d_weight``, (size,), float32.
    """
    size = len(weight)
    for row in range(first, last):
        read, above, written = x[row], d_out[row], dx[row]
        squares, along = _ZERO, _ZERO
        for c in range(size):
            squares += as_float32(read[c]) * as_float32(read[c])
            along += as_float32(read[c]) * as_float32(above[c]) * weight[c]
        scale = np.float32(_ONE / np.sqrt(squares / np.float32(size) + epsilon))
        shift = along * scale * scale * scale / np.float32(size)
        for c in range(size):
            number, slope = as_float32(read[c]), as_float32(above[c])
            d_weight[c] += slope * number * scale
            written[c] = as_kind_of(dx, slope * weight[c] * scale - number * shift)


@compiled(CONTRACT, inline="always")
def sigmoid_of(x):
    """1 / (1 + exp(-x)) of a vector."""
    return quotient(spread(_ONE), one_and_power(x))


@compiled(CONTRACT, inline="always")
def slope_of_silu(x, share):
    """The derivative of SiLU at a vector whose sigmoid is ``share``."""
    rest = total(spread(_ONE), product(share, spread(-_ONE)))
    return product(share, total(spread(_ONE), product(x, rest)))
