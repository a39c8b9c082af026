"""The steps between a Mamba-2 layer's projections, each in one pass over memory, compiled by numba.

A flat array holds the rows of a matrix, one for each token, at a distance of ``stride`` numbers, which is more
than their width where they are a part of a projection's output. Numbers are float32, or bfloat16 given as uint16;
sums are float32.
"""

# numba compiles these functions: their types are those of their arguments.
# ruff: noqa: ANN001, ANN201, ANN202

from __future__ import annotations

import numpy as np
from numba import njit, types
from numba.extending import overload

from spscanner_rag.mamba2.numba_vectors import (
    LANES,
    TO_INTEGER,
    between,
    flushed,
    load,
    power_of_rounded,
    product,
    quotient,
    repeated,
    spread,
    store,
    total,
)

BLOCK_TOKENS = 32
"""Tokens for which the inputs of a head are kept in the cache while its state is advanced, some rows at a time."""

STATE_ROWS = 8
"""Rows of the state that stay in registers over the tokens of a block; `_advance` is written for this number."""

SMALLEST_STATE = np.float32(1e-30)
"""Smaller numbers in the state are set to 0 now and then, before they become denormal numbers, with which a
processor computes many times slower."""

SMALLEST_PRODUCT = np.float32(1e-15)
"""The decays of tokens that are read together are multiplied, and the state gets the product at their end. Only so
many tokens are read together that the product does not become smaller than this."""

_LOG2_E = np.float32(1.44269504)
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_EXP_MOST = np.float32(87.0)
_E1, _E2, _E3 = np.float32(1.9875691500e-4), np.float32(1.3981999507e-3), np.float32(8.3334519073e-3)
_E4, _E5, _E6 = np.float32(4.1665795894e-2), np.float32(1.6666665459e-1), np.float32(5.0000001201e-1)
_TO_INTEGER = np.float32(TO_INTEGER)
_HALF, _ONE, _ZERO, _MINUS_ONE = np.float32(0.5), np.float32(1.0), np.float32(0.0), np.float32(-1.0)

_CONTRACT = {"contract", "nsz"}
_SUMS = {"contract", "nsz", "reassoc"}  # sums in any order, so that they can be vectors


def as_float32(number):
    """A number of either kind as float32."""
    raise NotImplementedError("compiled functions alone call this")


def as_kind_of(array, number):
    """A float32 number as the kind of number that the array has."""
    raise NotImplementedError("compiled functions alone call this")


def _compiled(flags, *, inline="never", keep=False):
    """Compile a function when it is first called; ``keep`` the code on disk for the processes that follow."""

    def compile_function(function):
        options = {"nogil": True, "error_model": "numpy", "fastmath": flags, "inline": inline}
        try:
            return njit(function, cache=keep, **options)
        except RuntimeError:  # neither this folder nor the user's cache can be written
            return njit(function, **options)

    return compile_function


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


@_compiled(_CONTRACT, inline="always")
def exponential(x):
    """exp(x) between -87 and 87, in operations that vectorize; relative error below 3e-7 (Cephes, expf)."""
    x = min(max(x, -_EXP_MOST), _EXP_MOST)
    power = np.floor(x * _LOG2_E + _HALF)
    x = x - power * _LN2_HIGH
    x = x - power * _LN2_LOW
    series = ((((_E1 * x + _E2) * x + _E3) * x + _E4) * x + _E5) * x + _E6
    series = series * x * x + x + _ONE
    return series * np.int32((np.int32(power) + np.int32(127)) << np.int32(23)).view(np.float32)


@_compiled(_CONTRACT, inline="always")
def silu(x):
    """SiLU: x / (1 + exp(-x))."""
    return x / (_ONE + exponential(-x))


@_compiled(_CONTRACT, inline="always")
def silu_of(x):
    """`silu` of a vector."""
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
    return quotient(x, total(product(series, power_of_rounded(rounded)), spread(_ONE)))


@_compiled(_CONTRACT, keep=True)
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


@_compiled(_CONTRACT, keep=True)
def scan_heads(x, B, C, x_stride, B_stride, C_stride, dt, decay, skip, groups, state, out, first, last):
    """The state-space operator (`spscanner_rag.mamba2.ssd`) of the heads ``first`` to ``last``, token by token.

    ``x`` is (tokens, heads, headdim), ``B`` and ``C`` (tokens, groups, d_state), ``dt`` and ``decay``, exp(dt A),
    (tokens, heads), ``skip`` (heads, headdim), ``state`` (heads, headdim, d_state), float32, changed in place,
    ``out`` (tokens, heads, headdim).

    With P_t the product of the decays of the tokens up to t that are read together, the state h_t is kept as
    h_t / P_t, which needs no product with a decay: h_t / P_t = h_(t-1) / P_(t-1) + B_t dt_t x_t / P_t.
    """
    tokens, heads = dt.shape
    _, headdim, d_state = state.shape
    width = (headdim + LANES - 1) // LANES * LANES
    whole = headdim - headdim % LANES
    rows = (d_state + STATE_ROWS - 1) // STATE_ROWS * STATE_ROWS
    # the states, (heads, rows, width): headdim is innermost
    h = np.zeros((last - first) * rows * width, np.float32)
    ahead = np.ones(last - first, np.float32)  # the product that each head's state still lacks
    driven = np.zeros(BLOCK_TOKENS * width, np.float32)  # dt x, divided by the product
    y = np.zeros(BLOCK_TOKENS * width, np.float32)
    products = np.ones(BLOCK_TOKENS, np.float32)
    pairs = np.zeros(rows * BLOCK_TOKENS * 2, np.float32)  # B and C, by rows of the state
    for head in range(first, last):
        at = (head - first) * rows * width
        for n in range(d_state):
            for p in range(headdim):
                h[at + n * width + p] = state[head, p, n]
    for start in range(0, tokens, BLOCK_TOKENS):
        count = min(BLOCK_TOKENS, tokens - start)
        group = -1
        for head in range(first, last):
            if group != head * groups // heads:
                group = head * groups // heads
                for t in range(count):
                    B_at = (start + t) * B_stride + group * d_state
                    C_at = (start + t) * C_stride + group * d_state
                    _interleave(B[B_at : B_at + d_state], C[C_at : C_at + d_state], pairs, t)
            own = h[(head - first) * rows * width : (head - first + 1) * rows * width]
            begin = 0
            while begin < count:  # tokens that are read together
                factor = ahead[head - first] * decay[start + begin, head]
                products[begin] = _ONE
                end = begin + 1
                while end < count:
                    products[end] = products[end - 1] * decay[start + end, head]
                    if products[end] < SMALLEST_PRODUCT:
                        break
                    end += 1
                ahead[head - first] = products[end - 1]
                for t in range(begin, end):
                    step = np.float32(dt[start + t, head] / products[t])
                    x_at, to = (start + t) * x_stride + head * headdim, t * width
                    for p in range(0, whole, LANES):
                        store(driven, to + p, product(load(x, x_at + p), spread(step)))
                    for p in range(whole, headdim):
                        driven[to + p] = as_float32(x[x_at + p]) * step
                    for p in range(0, width, LANES):
                        store(y, to + p, spread(_ZERO))
                for n in range(0, rows, STATE_ROWS):
                    for p in range(0, width, LANES):
                        _advance(own, factor, n, width, driven, y, p, pairs, begin, end)
                begin = end
            for t in range(count):
                x_at, from_y = (start + t) * x_stride + head * headdim, t * width
                to, skip_at = ((start + t) * heads + head) * headdim, head * headdim
                for p in range(0, whole, LANES):
                    skipped = product(load(x, x_at + p), load(skip, skip_at + p))
                    store(out, to + p, total(product(load(y, from_y + p), spread(products[t])), skipped))
                for p in range(whole, headdim):
                    skipped = as_float32(x[x_at + p]) * skip[head, p]
                    number = y[from_y + p] * products[t] + skipped
                    out[start + t, head, p] = as_kind_of(out, number)
    for head in range(first, last):
        at = (head - first) * rows * width
        for n in range(d_state):
            for p in range(headdim):
                state[head, p, n] = h[at + n * width + p] * ahead[head - first]


@_compiled(_CONTRACT)
def _interleave(B, C, pairs, t):
    """Put B and C of token ``t`` of a block where `_advance` reads them: in turn `STATE_ROWS` of each."""
    for n in range(0, len(B), STATE_ROWS):
        to = (n * BLOCK_TOKENS + t * STATE_ROWS) * 2
        for i in range(min(STATE_ROWS, len(B) - n)):
            pairs[to + i] = as_float32(B[n + i])
            pairs[to + STATE_ROWS + i] = as_float32(C[n + i])


@_compiled(_CONTRACT)
def _advance(h, factor, n, width, driven, y, p, pairs, begin, end):
    """Multiply `STATE_ROWS` times `LANES` numbers of a state; then, by token, h += B u, y += C h."""
    at, pair = n * width + p, (n * BLOCK_TOKENS + begin * STATE_ROWS) * 2
    factors = spread(factor)
    h0 = flushed(product(load(h, at), factors), SMALLEST_STATE)
    h1 = flushed(product(load(h, at + width), factors), SMALLEST_STATE)
    h2 = flushed(product(load(h, at + 2 * width), factors), SMALLEST_STATE)
    h3 = flushed(product(load(h, at + 3 * width), factors), SMALLEST_STATE)
    h4 = flushed(product(load(h, at + 4 * width), factors), SMALLEST_STATE)
    h5 = flushed(product(load(h, at + 5 * width), factors), SMALLEST_STATE)
    h6 = flushed(product(load(h, at + 6 * width), factors), SMALLEST_STATE)
    h7 = flushed(product(load(h, at + 7 * width), factors), SMALLEST_STATE)
    for t in range(begin, end):
        u = load(driven, t * width + p)
        h0 = total(h0, product(repeated(pairs, pair), u))
        h1 = total(h1, product(repeated(pairs, pair + 1), u))
        h2 = total(h2, product(repeated(pairs, pair + 2), u))
        h3 = total(h3, product(repeated(pairs, pair + 3), u))
        h4 = total(h4, product(repeated(pairs, pair + 4), u))
        h5 = total(h5, product(repeated(pairs, pair + 5), u))
        h6 = total(h6, product(repeated(pairs, pair + 6), u))
        h7 = total(h7, product(repeated(pairs, pair + 7), u))
        even = total(load(y, t * width + p), product(repeated(pairs, pair + 8), h0))
        odd = product(repeated(pairs, pair + 9), h1)
        even = total(even, product(repeated(pairs, pair + 10), h2))
        odd = total(odd, product(repeated(pairs, pair + 11), h3))
        even = total(even, product(repeated(pairs, pair + 12), h4))
        odd = total(odd, product(repeated(pairs, pair + 13), h5))
        even = total(even, product(repeated(pairs, pair + 14), h6))
        odd = total(odd, product(repeated(pairs, pair + 15), h7))
        store(y, t * width + p, total(even, odd))
        pair += 2 * STATE_ROWS
    store(h, at, h0)
    store(h, at + width, h1)
    store(h, at + 2 * width, h2)
    store(h, at + 3 * width, h3)
    store(h, at + 4 * width, h4)
    store(h, at + 5 * width, h5)
    store(h, at + 6 * width, h6)
    store(h, at + 7 * width, h7)


@_compiled(_SUMS, keep=True)
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


@_compiled(_SUMS, keep=True)
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
