"""The steps of a Mamba-2 layer, compiled by numba.

They are convolution, norms and the state-space operator.

A flat array holds the rows of a matrix, one for each token, at a distance of ``stride``
numbers, which is more than their width if they are a part of a projection's output.
Numbers are float32, or bfloat16 given as uint16; sums are float32. States are matrices
of rows and lanes in flat arrays, swept over the tokens of a run in parts that stay in
registers.
"""

# numba compiles these functions: their types are those of their arguments.
# ruff: noqa: ANN001, ANN201, ANN202  # noqa: RUF100

from __future__ import annotations

import numpy as np

from spscanner_rag.mamba2.kernels.numba.vectors import (
    CONTRACT,
    LANES,
    SUMS,
    as_float32,
    as_kind_of,
    compiled,
    flushed,
    load,
    product,
    repeated,
    silu,
    silu_of,
    spread,
    store,
    total,
)

ROWS = 8
"""Rows of a matrix that stay in registers over the tokens of a run; `sweep_part` is
written for this number."""

SMALLEST = np.float32(1e-30)
"""Smaller numbers in a state are set to 0 now and then, before they become denormal
numbers, with which a processor computes many times more slowly."""

BLOCK_TOKENS = 32
"""Number of tokens whose inputs to a head stay in the cache while its state is
advanced, some rows at a time."""

SMALLEST_PRODUCT = np.float32(1e-15)
"""The decays of tokens that are read together are multiplied, and the state gets the
product at their end. A group of tokens ends before the product would become smaller
than this."""

_ONE = np.float32(1.0)
_ZERO = np.float32(0.0)


@compiled(CONTRACT, keep=True)
def convolve_rows(inputs, stride, before, weight, bias, sequence, out, first, last):
    """Causal depthwise convolution and SiLU of tokens of one row of the batch.

    They are the tokens ``first`` to ``last``.

    ``before`` (taps - 1, channels) has the inputs before token 0, ``weight`` is (taps,
    channels), float32, ``out`` (tokens, channels). If ``sequence``, (tokens,), is not
    empty, a token reads only its own number; ``before``: 0.
    """
    taps, channels = weight.shape
    vectors = channels - channels % LANES
    for token in range(first, last):
        # the first that reads a token of the same sequence: numbers do not decrease
        tap = taps - 1
        while tap > 0:
            source = token + tap - taps
            if len(sequence) and sequence[token] != (
                sequence[source] if source >= 0 else 0
            ):
                break
            tap -= 1
        for c in range(0, vectors, LANES):
            value = load(bias, c)
            for i in range(tap, taps):
                source = token + i - taps + 1
                if source >= 0:
                    value = total(
                        value,
                        product(
                            load(weight, i * channels + c),
                            load(inputs, source * stride + c),
                        ),
                    )
                else:
                    earlier = load(before, (source + taps - 1) * channels + c)
                    value = total(
                        value, product(load(weight, i * channels + c), earlier)
                    )
            store(out, token * channels + c, silu_of(value))
        for c in range(vectors, channels):
            number = bias[c]
            for i in range(tap, taps):
                source = token + i - taps + 1
                value = (
                    inputs[source * stride + c]
                    if source >= 0
                    else before[source + taps - 1, c]
                )
                number += weight[i, c] * as_float32(value)
            out[token, c] = as_kind_of(out, silu(number))


@compiled(SUMS, keep=True)
def gated_norm_rows(
    y, z, z_stride, weight, groups, epsilon, norm_before_gate, out, first, last
):
    """RMS norm with a SiLU gate of the rows ``first`` to ``last``.

    Each of ``groups`` parts is normed separately.

    ``y`` and ``out`` are (rows, d_inner), ``weight`` is (d_inner,), float32.
    """
    d_inner = len(weight)
    width = d_inner // groups
    vectors = d_inner - d_inner % LANES
    gate = np.empty(d_inner, np.float32)
    value = np.empty(d_inner, np.float32)
    for row in range(first, last):
        at = row * d_inner
        z_at = row * z_stride
        for c in range(0, vectors, LANES):
            gates = silu_of(load(z, z_at + c))
            store(gate, c, gates)
            store(
                value,
                c,
                (
                    load(y, at + c)
                    if norm_before_gate
                    else product(load(y, at + c), gates)
                ),
            )
        for c in range(vectors, d_inner):
            gate[c] = silu(as_float32(z[z_at + c]))
            value[c] = as_float32(y[row, c]) * (_ONE if norm_before_gate else gate[c])
        for start in range(0, d_inner, width):
            part = value[start : start + width]
            factors = weight[start : start + width]
            squares = _ZERO
            for c in range(width):
                squares += part[c] * part[c]
            scale = np.float32(_ONE / np.sqrt(squares / np.float32(width) + epsilon))
            for c in range(width):
                part[c] *= scale * factors[c]
        for c in range(0, vectors, LANES):
            values = load(value, c)
            store(
                out,
                at + c,
                product(values, load(gate, c)) if norm_before_gate else values,
            )
        for c in range(vectors, d_inner):
            out[row, c] = as_kind_of(
                out, value[c] * (gate[c] if norm_before_gate else _ONE)
            )


@compiled(SUMS, keep=True)
def norm_rows(x, weight, epsilon, out, first, last):
    """RMS norm of the rows ``first`` to ``last`` of ``x``, (rows, size)."""
    size = len(weight)
    for row in range(first, last):
        numbers = x[row]
        normed = out[row]
        squares = _ZERO
        for c in range(size):
            squares += as_float32(numbers[c]) * as_float32(numbers[c])
        scale = np.float32(_ONE / np.sqrt(squares / np.float32(size) + epsilon))
        for c in range(size):
            normed[c] = as_kind_of(out, as_float32(numbers[c]) * scale * weight[c])


@compiled(CONTRACT, inline="always")
def rounded(size, unit):
    """Round a size up to whole units."""
    return (size + unit - 1) // unit * unit


@compiled(CONTRACT)
def sweep_part(
    h,
    at,
    width,
    scale,
    entering,
    leaving,
    row,
    row_step,
    lanes,
    out,
    lane,
    lane_step,
    count,
):
    """Advance `ROWS` times `LANES` numbers of a state over ``count`` tokens.

    They stay in registers.
    """
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


@compiled(CONTRACT, keep=True)
def scan_heads(
    x,
    B,
    C,
    x_stride,
    B_stride,
    C_stride,
    dt,
    decay,
    skip,
    groups,
    state,
    out,
    first,
    last,
):
    """The state-space operator of some heads, token by token.

    It is `spscanner_rag.mamba2.ssd` for the heads ``first`` to ``last``.

    ``x`` is (tokens, heads, headdim), ``B`` and ``C`` (tokens, groups, d_state), ``dt``
    and ``decay``, exp(dt A), (tokens, heads), ``skip`` (heads, headdim), ``state``
    (heads, headdim, d_state), float32, changed in place, ``out`` (tokens, heads,
    headdim).

    With P_t the product of the decays of the tokens up to t that are read together, the
    state h_t is kept as h_t / P_t, which needs no product with a decay: h_t / P_t =
    h_(t-1) / P_(t-1) + B_t dt_t x_t / P_t.
    """
    tokens, heads = dt.shape
    _, headdim, d_state = state.shape
    width = rounded(headdim, LANES)
    rows = rounded(d_state, ROWS)
    vectors = headdim - headdim % LANES
    # the states: headdim is innermost
    h = np.zeros((last - first, rows, width), np.float32)
    # the product that each head's state still lacks
    ahead = np.ones(last - first, np.float32)
    driven = np.zeros(BLOCK_TOKENS * width, np.float32)  # dt x, divided by the product
    y = np.zeros(BLOCK_TOKENS * width, np.float32)
    products = np.ones(BLOCK_TOKENS, np.float32)
    # B and C, by rows of the state
    pairs = np.zeros(rows * BLOCK_TOKENS * 2, np.float32)
    pairs_C = pairs[ROWS:]
    for head in range(first, last):
        h[head - first, :d_state, :headdim] = state[head].T
    for start in range(0, tokens, BLOCK_TOKENS):
        count = min(BLOCK_TOKENS, tokens - start)
        group = -1
        for head in range(first, last):
            if group != head * groups // heads:
                group = head * groups // heads
                for t in range(count):
                    B_at = (start + t) * B_stride + group * d_state
                    C_at = (start + t) * C_stride + group * d_state
                    _interleave(
                        B[B_at : B_at + d_state], C[C_at : C_at + d_state], pairs, t
                    )
            head_state = h[head - first].reshape(-1)
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
                y[begin * width : end * width] = _ZERO
                for t in range(begin, end):
                    step = np.float32(dt[start + t, head] / products[t])
                    x_at = (start + t) * x_stride + head * headdim
                    to = t * width
                    for p in range(0, vectors, LANES):
                        store(driven, to + p, product(load(x, x_at + p), spread(step)))
                    for p in range(vectors, headdim):
                        driven[to + p] = as_float32(x[x_at + p]) * step
                for n in range(0, rows, ROWS):
                    pair = (n * BLOCK_TOKENS + begin * ROWS) * 2
                    for p in range(0, width, LANES):
                        sweep_part(
                            head_state,
                            n * width + p,
                            width,
                            factor,
                            pairs,
                            pairs_C,
                            pair,
                            2 * ROWS,
                            driven,
                            y,
                            begin * width + p,
                            width,
                            end - begin,
                        )
                begin = end
            for t in range(count):
                x_at = (start + t) * x_stride + head * headdim
                from_y = t * width
                to = ((start + t) * heads + head) * headdim
                skip_at = head * headdim
                for p in range(0, vectors, LANES):
                    skipped = product(load(x, x_at + p), load(skip, skip_at + p))
                    store(
                        out,
                        to + p,
                        total(
                            product(load(y, from_y + p), spread(products[t])), skipped
                        ),
                    )
                for p in range(vectors, headdim):
                    skipped = as_float32(x[x_at + p]) * skip[head, p]
                    number = y[from_y + p] * products[t] + skipped
                    out[start + t, head, p] = as_kind_of(out, number)
    for head in range(first, last):
        state[head] = h[head - first, :d_state, :headdim].T * ahead[head - first]


@compiled(CONTRACT)
def _interleave(B, C, pairs, t):
    """Put B and C of token ``t`` of a block where `sweep_part` reads them.

    They stand there in turn, `ROWS` of each.
    """
    for n in range(0, len(B), ROWS):
        to = (n * BLOCK_TOKENS + t * ROWS) * 2
        for i in range(min(ROWS, len(B) - n)):
            pairs[to + i] = as_float32(B[n + i])
            pairs[to + ROWS + i] = as_float32(C[n + i])
