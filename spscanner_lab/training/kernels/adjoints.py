"""The gradients of a layer's steps, compiled by numba.

The steps are the convolution, the gated norm and the state-space operator.

Each function recomputes what it needs from the inputs of its counterpart in
`mamba2.kernels.numba.steps`. All arrays are contiguous. Numbers are float32; where a
docstring says "of either kind", they may also be bfloat16, given as uint16.
"""

# numba compiles these functions and takes types from their arguments.
# ruff: noqa: ANN001, ANN201  # noqa: RUF100

from __future__ import annotations

import numpy as np

from spscanner_rag.mamba2.kernels.numba.steps import SMALLEST
from spscanner_rag.mamba2.kernels.numba.vectors import (
    CONTRACT,
    LANES,
    SUMS,
    as_float32,
    as_kind_of,
    compiled,
    exponential,
    flushed,
    load,
    product,
    repeated,
    spread,
    store,
    total,
)

BLOCK_TOKENS = 64

# for smaller decays the gradient of their logarithm is below rounding errors
_FORGOTTEN = np.float32(1e-8)
_ONE = np.float32(1.0)
_ZERO = np.float32(0.0)


@compiled(SUMS, keep=True)
def convolution(x, weight, bias, sequence, d_out, d_x, d_weight, d_bias):
    """Gradients of a causal depthwise convolution with SiLU, for one batch row.

    ``d_out``: (tokens, channels).

    ``x``, (taps - 1 + tokens, channels), begins with the inputs before the first token.
    ``sequence``, of the same length, has the number of the sequence that each input
    belongs to; ``weight`` is (taps, channels). Gradients are added to the last three
    arguments. ``x`` and ``d_out`` are of either kind.
    """
    taps, channels = weight.shape
    slope = np.empty(channels, np.float32)
    for token in range(len(d_out)):
        current = sequence[token + taps - 1]
        slope[:] = bias
        for tap in range(taps):
            if sequence[token + tap] == current:
                for c in range(channels):
                    slope[c] += weight[tap, c] * as_float32(x[token + tap, c])
        for c in range(channels):
            share = _ONE / (_ONE + exponential(-slope[c]))
            slope[c] = (
                as_float32(d_out[token, c]) * share * (_ONE + slope[c] * (_ONE - share))
            )
            d_bias[c] += slope[c]
        for tap in range(taps):
            if sequence[token + tap] == current:
                for c in range(channels):
                    d_weight[tap, c] += slope[c] * as_float32(x[token + tap, c])
                    d_x[token + tap, c] += slope[c] * weight[tap, c]


@compiled(SUMS, keep=True)
def gated_norm(
    y,
    z,
    weight,
    groups,
    epsilon,
    norm_before_gate,
    d_out,
    dy,
    dz,
    d_weight,
    first,
    last,
):
    """Gradients of an RMS norm with a SiLU gate.

    For rows ``first`` to ``last`` of (rows, d_inner), of either kind.

    ``dy`` and ``dz`` are overwritten; ``d_weight``, (d_inner,), float32 like
    ``weight``, is added to.
    """
    width = len(weight) // groups
    value = np.empty(width, np.float32)
    above = np.empty(width, np.float32)
    gate = np.empty(width, np.float32)
    slope = np.empty(width, np.float32)
    for row in range(first, last):
        for start in range(0, len(weight), width):
            part = slice(start, start + width)
            number = y[row, part]
            raw = z[row, part]
            up = d_out[row, part]
            factors = weight[part]
            into_y = dy[row, part]
            into_z = dz[row, part]
            into_weight = d_weight[part]
            squares = _ZERO
            along = _ZERO
            for c in range(width):
                gated = as_float32(raw[c])
                share = _ONE / (_ONE + exponential(-gated))
                gate[c] = gated * share
                slope[c] = share * (_ONE + gated * (_ONE - share))
                value[c] = as_float32(number[c]) * (
                    _ONE if norm_before_gate else gate[c]
                )
                above[c] = as_float32(up[c]) * (gate[c] if norm_before_gate else _ONE)
                squares += value[c] * value[c]
                along += value[c] * above[c] * factors[c]
            scale = np.float32(_ONE / np.sqrt(squares / np.float32(width) + epsilon))
            shift = along * scale * scale * scale / np.float32(width)
            for c in range(width):
                into_weight[c] += above[c] * value[c] * scale
                # the gradient of the norm's input
                back = above[c] * factors[c] * scale - value[c] * shift
                if norm_before_gate:
                    of_gate = as_float32(up[c]) * value[c] * scale * factors[c]
                else:
                    of_gate = back * as_float32(number[c])
                    back *= gate[c]
                into_y[c] = as_kind_of(dy, back)
                into_z[c] = as_kind_of(dz, of_gate * slope[c])


@compiled(SUMS, keep=True)
def scan(
    u,
    B,
    C,
    dy,
    decay,
    state,
    d_after,
    du,
    dB,
    dC,
    of_u,
    d_log_decay,
    d_state,
    first,
    last,
):
    """Gradients of the state-space operator without skip weights.

    For heads ``first`` to ``last`` of one row.

    ``u``, dt x, and ``dy`` are (heads, tokens, headdim), ``B`` and ``C`` (groups,
    tokens, d_state), ``decay``, (heads, tokens), is 0 where a sequence starts,
    ``state`` and ``d_after``, (heads, headdim, d_state), are the state before the first
    token and the gradient of that after the last; headdim and d_state are multiples of
    `LANES`. ``of_u``, (heads, tokens), is the inner product of u and its gradient.
    ``du``, ``dB`` and ``dC`` are added to; the other outputs are overwritten.

    The operator is a `sweep`, and so is each of its gradients:

    =====  =========  ========  =====  ========  =======
    out    direction  entering  lanes  leaving   H is
    =====  =========  ========  =====  ========  =======
    y      forwards   u         B      -         the state
    dC     forwards   u         B      dy        the state
    dB     backwards  dy        C      u         its gradient
    du     backwards  C         dy     B         its gradient
    =====  =========  ========  =====  ========  =======

    (Dao and Gu 2024, section 6, have this symmetry for whole blocks.) The gradient of
    the logarithm of a decay is the inner product of the state that it multiplies and
    that state's gradient. From token to token this product loses what leaves through y
    and gains what enters through u.
    """
    heads, tokens, headdim = u.shape
    groups, _, size = B.shape
    following = np.ones(tokens, np.float32)
    states = np.empty((tokens // BLOCK_TOKENS + 2, headdim, size), np.float32)
    for head in range(first, last):
        group = head * groups // heads
        following[:-1] = decay[head, 1:]
        h = state[head].copy()
        g = d_after[head].copy()
        flipped = g.T.copy()
        own_B = np.zeros((tokens, size), np.float32)
        own_C = np.zeros((tokens, size), np.float32)
        for begin in range(0, tokens, BLOCK_TOKENS):
            end = min(begin + BLOCK_TOKENS, tokens)
            sweep(h, u[head], B[group], dy[head], decay[head], own_C, range(begin, end))
            states[begin // BLOCK_TOKENS] = h
        for begin in range(
            (tokens - 1) // BLOCK_TOKENS * BLOCK_TOKENS, -1, -BLOCK_TOKENS
        ):
            end = min(begin + BLOCK_TOKENS, tokens)
            # computed from the states again in each block, so that rounding errors do
            # not add up
            change = np.float64(
                (g * states[begin // BLOCK_TOKENS]).sum() * following[end - 1]
            )
            backwards = range(end - 1, begin - 1, -1)
            sweep(g, dy[head], C[group], u[head], following, own_B, backwards)
            sweep(flipped, C[group], dy[head], B[group], following, du[head], backwards)
            for t in backwards:
                leaves = _ZERO
                enters = _ZERO
                for n in range(size):
                    leaves += own_C[t, n] * C[group, t, n]
                    dC[group, t, n] += own_C[t, n]
                    dB[group, t, n] += own_B[t, n]
                for p in range(headdim):
                    enters += u[head, t, p] * du[head, t, p]
                change += leaves - enters
                if decay[head, t] < _FORGOTTEN:
                    change = np.float64(0.0)
                of_u[head, t] = enters
                d_log_decay[head, t] = change
        d_state[head] = g * decay[head, 0]


@compiled(CONTRACT)
def sweep(h, entering, lanes, leaving, factors, out, order):
    """Update a matrix for each token in ``order``.

    h = factor h + outer(entering, lanes) and then out = out + leaving h.

    ``h`` is (rows, width), ``entering`` and ``leaving`` (tokens, rows), ``lanes`` and
    ``out`` (tokens, width).
    """
    rows, width = h.shape
    for token in order:
        factor = spread(factors[token])
        at = token * rows
        for lane in range(0, width, LANES):
            place = token * width + lane
            into = load(lanes, place)
            summed = load(out, place)
            for row in range(rows):
                old = product(load(h, row * width + lane), factor)
                value = flushed(
                    total(old, product(repeated(entering, at + row), into)), SMALLEST
                )
                store(h, row * width + lane, value)
                summed = total(summed, product(repeated(leaving, at + row), value))
            store(out, place, summed)
