"""The state-space operator (`spscanner_rag.mamba2.ssd`) for training, with its gradients, compiled by numba.

A *sweep* goes over tokens, forwards or backwards, with a matrix H of rows and lanes:

    H = decay H + outer(entering_t, lanes_t)
    out_t = out_t + leaving_t H

The operator is one sweep, and so is each of its gradients. Let u = dt x, and let dy be the gradient of y; then

=====  =========  ========  =====  ========  =======
out    direction  entering  lanes  leaving   H is
=====  =========  ========  =====  ========  =======
y      forwards   B         u      C         the state
dC     forwards   u         B      dy        the state
du     backwards  C         dy     B         its gradient
dB     backwards  dy        C      u         its gradient
=====  =========  ========  =====  ========  =======

(Dao and Gu 2024, section 6, have this symmetry for whole blocks.) Within a run of tokens over which the decays
multiply to at least `SMALLEST_DECAY`, the factors of both sides are divided and multiplied by that product, so
that H itself need not be multiplied at every token. Flat arrays are as in `numba_functions`.
"""

# numba compiles these functions: their types are those of their arguments.
# ruff: noqa: ANN001, ANN201, ANN202

from __future__ import annotations

import numpy as np

from spscanner_rag.mamba2.numba_functions import (
    _compiled,
)
from spscanner_rag.mamba2.numba_rows import clear, narrow, padded, widen
from spscanner_rag.mamba2.numba_vectors import (
    LANES,
    flushed,
    load,
    product,
    repeated,
    spread,
    store,
    total,
    total_of_lanes,
)

KEPT_TOKENS = 64
"""Tokens between the states that the forward pass keeps for the backward pass."""

ROWS = 8
"""Rows of H that stay in registers over the tokens of a run; `_sweep` is written for this number."""

SMALLEST_DECAY = np.float32(1e-14)
"""A run of tokens ends before the product of its decays becomes smaller."""

_SMALLEST = np.float32(1e-30)  # smaller numbers become 0: a processor computes slowly with denormal numbers
_FORGOTTEN = np.float32(1e-8)  # after smaller decays the gradient of their logarithm is below rounding errors
_ONE, _ZERO = np.float32(1.0), np.float32(0.0)
_CONTRACT = {"contract", "nsz"}
_SUMS = {"contract", "nsz", "reassoc"}  # sums in any order, so that they can be vectors


@_compiled(_CONTRACT, keep=True)
def scan_forwards(
    x, B, C, x_stride, B_stride, C_stride, dt, decay, skip, groups, state, kept, out, first, last
):
    """The operator for the heads ``first`` to ``last``.

    ``x`` is (tokens, heads, headdim), ``B`` and ``C`` (tokens, groups, d_state), ``dt`` and ``decay``, exp(dt A)
    or 0 where a sequence starts, (tokens, heads), ``skip`` (heads, headdim), ``state`` (heads, headdim, d_state).
    ``kept``, (blocks + 1, heads, headdim, d_state), gets the state before each `KEPT_TOKENS` tokens and that
    after the last; ``out`` is (tokens, heads, headdim).
    """
    tokens, heads = dt.shape
    _, headdim, d_state = state.shape
    wide, long, tall = _rounded(headdim, LANES), _rounded(d_state, LANES), _rounded(d_state, ROWS)
    h = np.zeros((last - first) * tall * wide, np.float32)  # the states, (d_state, headdim) each
    rows_B, rows_C = np.zeros(KEPT_TOKENS * long, np.float32), np.zeros(KEPT_TOKENS * long, np.float32)
    u, y = np.zeros(KEPT_TOKENS * wide, np.float32), np.zeros(KEPT_TOKENS * wide, np.float32)
    numbers, skips = np.zeros(KEPT_TOKENS * wide, np.float32), padded(skip, wide)
    written = out.reshape(-1)
    products, runs = np.empty(KEPT_TOKENS, np.float32), np.empty(KEPT_TOKENS + 1, np.int64)
    for head in range(first, last):
        at = (head - first) * tall * wide
        for p in range(headdim):
            for n in range(d_state):
                h[at + n * wide + p] = state[head, p, n]
    for start in range(0, tokens, KEPT_TOKENS):
        count = min(KEPT_TOKENS, tokens - start)
        group = -1
        for head in range(first, last):
            if group != head * groups // heads:
                group = head * groups // heads
                widen(B, start * B_stride + group * d_state, B_stride, d_state, rows_B, long, count)
                widen(C, start * C_stride + group * d_state, C_stride, d_state, rows_C, long, count)
            at = (head - first) * tall * wide
            _flush(h, at, tall * wide)
            _keep(h, at, wide, kept, start // KEPT_TOKENS, head)
            amount = _runs(decay, start, head, count, products, runs)
            widen(x, start * x_stride + head * headdim, x_stride, headdim, numbers, wide, count)
            for t in range(count):
                step = spread(np.float32(dt[start + t, head] / products[t]))
                for p in range(t * wide, (t + 1) * wide, LANES):
                    store(u, p, product(load(numbers, p), step))
            clear(y, 0, count * wide)
            scale = _ONE
            for run in range(amount):
                begin, end = runs[run], runs[run + 1]
                scale *= decay[start + begin, head]
                _sweep(h, at, tall, wide, scale, rows_B, rows_C, long, u, y, begin, 1, end - begin)
                scale = products[end - 1]
            _scale(h, at, tall * wide, scale)
            for t in range(count):
                factor = spread(products[t])
                for p in range(0, wide, LANES):
                    past = product(load(numbers, t * wide + p), load(skips, head * wide + p))
                    store(y, t * wide + p, total(product(load(y, t * wide + p), factor), past))
            narrow(y, wide, headdim, written, (start * heads + head) * headdim, heads * headdim, count)
    for head in range(first, last):
        _keep(h, (head - first) * tall * wide, wide, kept, len(kept) - 1, head)


@_compiled(_SUMS, keep=True)
def scan_backwards(
    x, B, C, dy, x_stride, B_stride, C_stride, dy_stride, dt, decay, skip, groups, kept, d_state_after,
    d_state_before, dx, dB, dC, d_dt, d_log_decay, d_skip, first, last,
):  # fmt: skip
    """The gradients of `scan_forwards` for the heads ``first`` to ``last``.

    ``dy`` is (tokens, heads, headdim), ``d_state_after`` the gradient of the state after the last token. Written
    are ``d_state_before``, ``dx``, (tokens, heads, headdim), ``d_dt``, the gradient through dt x, and
    ``d_log_decay``, both (tokens, heads); added to are ``dB`` and ``dC``, (tokens, groups, d_state), float32, and
    ``d_skip``, (heads, headdim).
    """
    tokens, heads = dt.shape
    _, headdim, d_state = d_state_after.shape
    wide, tall = _rounded(headdim, LANES), _rounded(d_state, ROWS)  # of d_state rows and headdim lanes
    long, high = _rounded(d_state, LANES), _rounded(headdim, ROWS)  # of headdim rows and d_state lanes
    g = np.zeros((last - first) * tall * wide, np.float32)  # the gradients of the states, (d_state, headdim)
    g_too = np.zeros((last - first) * high * long, np.float32)  # the same, (headdim, d_state)
    pendings = np.ones(last - first, np.float32)  # what to multiply them with
    h = np.zeros(high * long, np.float32)  # the state of a head, (headdim, d_state)
    rows_B, rows_C = np.zeros(KEPT_TOKENS * long, np.float32), np.zeros(KEPT_TOKENS * long, np.float32)
    sum_B, sum_C = np.zeros(KEPT_TOKENS * long, np.float32), np.zeros(KEPT_TOKENS * long, np.float32)
    own_C = np.zeros(KEPT_TOKENS * long, np.float32)
    u, rows_dy = np.zeros(KEPT_TOKENS * wide, np.float32), np.zeros(KEPT_TOKENS * wide, np.float32)
    du = np.zeros(KEPT_TOKENS * wide, np.float32)
    numbers, slopes = np.zeros(KEPT_TOKENS * wide, np.float32), np.zeros(KEPT_TOKENS * wide, np.float32)
    skips, sum_skip = padded(skip, wide), np.zeros(heads * wide, np.float32)
    written = dx.reshape(-1)
    products, runs = np.empty(KEPT_TOKENS, np.float32), np.empty(KEPT_TOKENS + 1, np.int64)
    for head in range(first, last):
        at, at_too = (head - first) * tall * wide, (head - first) * high * long
        for p in range(headdim):
            for n in range(d_state):
                g[at + n * wide + p] = d_state_after[head, p, n]
                g_too[at_too + p * long + n] = d_state_after[head, p, n]
    for start in range((tokens - 1) // KEPT_TOKENS * KEPT_TOKENS, -1, -KEPT_TOKENS):
        count, block = min(KEPT_TOKENS, tokens - start), start // KEPT_TOKENS
        group = -1
        for head in range(first, last):
            if group != head * groups // heads:
                group = head * groups // heads
                widen(B, start * B_stride + group * d_state, B_stride, d_state, rows_B, long, count)
                widen(C, start * C_stride + group * d_state, C_stride, d_state, rows_C, long, count)
                clear(sum_B, 0, count * long)
                clear(sum_C, 0, count * long)
            own = head - first
            at, at_too, pending = own * tall * wide, own * high * long, pendings[own]
            _flush(g, at, tall * wide)
            _flush(g_too, at_too, high * long)
            # the gradient of the logarithm of the first decay after the block
            change = pending * _inner(g_too, at_too, long, kept[block + 1, head])
            _copy(kept[block, head], h, long)
            amount = _runs(decay, start, head, count, products, runs)
            widen(x, start * x_stride + head * headdim, x_stride, headdim, numbers, wide, count)
            widen(dy, start * dy_stride + head * headdim, dy_stride, headdim, slopes, wide, count)
            for t in range(count):
                step, factor = spread(np.float32(dt[start + t, head] / products[t])), spread(products[t])
                for p in range(t * wide, (t + 1) * wide, LANES):
                    store(u, p, product(load(numbers, p), step))
                    store(rows_dy, p, flushed(product(load(slopes, p), factor), _SMALLEST))
            clear(du, 0, count * wide)
            clear(own_C, 0, count * long)
            scale = _ONE
            for run in range(amount):
                begin, end = runs[run], runs[run + 1]
                scale *= decay[start + begin, head]
                _sweep(h, 0, high, long, scale, u, rows_dy, wide, rows_B, own_C, begin, 1, end - begin)
                scale = products[end - 1]
            for run in range(amount - 1, -1, -1):
                begin, end = runs[run], runs[run + 1]
                length, scale = end - begin, pending * products[end - 1]
                _sweep(g, at, tall, wide, scale, rows_C, rows_B, long, rows_dy, du, end - 1, -1, length)
                _sweep(g_too, at_too, high, long, scale, rows_dy, u, wide, rows_C, sum_B, end - 1, -1, length)
                pending = decay[start + begin, head]
            pendings[own] = pending
            for t in range(count - 1, -1, -1):
                step, inverse = dt[start + t, head], _ONE / products[t]
                steps, inverses = spread(step), spread(inverse)
                of_u, of_y = spread(_ZERO), spread(_ZERO)
                for p in range(0, wide, LANES):
                    at_p, at_skip = t * wide + p, head * wide + p
                    number, slope = load(numbers, at_p), load(slopes, at_p)
                    through = product(load(du, at_p), inverses)
                    of_u = total(of_u, product(through, number))
                    store(sum_skip, at_skip, total(load(sum_skip, at_skip), product(slope, number)))
                    past = product(slope, load(skips, at_skip))
                    store(du, at_p, total(product(through, steps), past))
                for n in range(t * long, (t + 1) * long, LANES):
                    value = load(own_C, n)
                    store(sum_C, n, total(load(sum_C, n), value))
                    of_y = total(of_y, product(value, load(rows_C, n)))
                of_x = total_of_lanes(of_u)
                # The product of the state and its gradient, from token to token: what leaves by y was in it
                # before, what enters by u was not.
                change += total_of_lanes(of_y) - of_x * step
                if decay[start + t, head] < _FORGOTTEN:
                    change = _ZERO
                d_dt[start + t, head] = of_x
                d_log_decay[start + t, head] = change
            narrow(du, wide, headdim, written, (start * heads + head) * headdim, heads * headdim, count)
            if head + 1 == last or (head + 1) * groups // heads != group:
                for t in range(count):
                    into_B, into_C = dB[start + t, group], dC[start + t, group]
                    for n in range(d_state):
                        into_B[n] += sum_B[t * long + n]
                        into_C[n] += sum_C[t * long + n]
    for head in range(first, last):
        at_too = (head - first) * high * long
        for p in range(headdim):
            for n in range(d_state):
                d_state_before[head, p, n] = g_too[at_too + p * long + n] * pendings[head - first]
            d_skip[head, p] += sum_skip[head * wide + p]


@_compiled(_CONTRACT)
def _runs(decay, start, head, count, products, runs):
    """Divide a block into runs: the number of runs, and in ``runs`` their first tokens, then the block's end.

    ``products`` gets the product of the decays of a run up to each token, without that of the run's first token.
    """
    amount, so_far = 0, _ZERO
    for t in range(count):
        so_far *= decay[start + t, head]
        if t == 0 or so_far < SMALLEST_DECAY:
            runs[amount] = t
            amount += 1
            so_far = _ONE
        products[t] = so_far
    runs[amount] = count
    return amount


@_compiled(_CONTRACT, inline="always")
def _rounded(size, unit):
    return (size + unit - 1) // unit * unit


@_compiled(_CONTRACT)
def _scale(numbers, at, size, factor):
    for i in range(at, at + size, LANES):
        store(numbers, i, product(load(numbers, i), spread(factor)))


@_compiled(_CONTRACT)
def _flush(numbers, at, size):
    for i in range(at, at + size, LANES):
        store(numbers, i, flushed(load(numbers, i), _SMALLEST))


@_compiled(_CONTRACT)
def _copy(matrix, h, width):
    for row in range(matrix.shape[0]):
        h[row * width : row * width + matrix.shape[1]] = matrix[row]


@_compiled(_SUMS)
def _inner(h, at, width, matrix):
    """The inner product of the matrix at ``at`` with another."""
    result = _ZERO
    for row in range(matrix.shape[0]):
        one, other = h[at + row * width : at + row * width + matrix.shape[1]], matrix[row]
        for lane in range(len(other)):
            result += one[lane] * other[lane]
    return result


@_compiled(_CONTRACT)
def _keep(h, at, width, kept, block, head):
    """Write a state that has headdim as its lanes."""
    _, _, headdim, d_state = kept.shape
    target = kept[block, head]
    for p in range(headdim):
        row = target[p]
        for n in range(d_state):
            row[n] = h[at + n * width + p]


@_compiled(_CONTRACT)
def _sweep(h, at, rows, width, scale, entering, leaving, row_stride, lanes, out, token, direction, count):
    """One run, ``count`` tokens from ``token`` on, of the matrix at ``at``, (rows, width), first times ``scale``.

    Rows of ``entering`` and ``leaving`` are ``row_stride`` apart, those of ``lanes`` and ``out`` ``width``.
    """
    for row in range(0, rows, ROWS):
        for lane in range(0, width, LANES):
            _sweep_part(
                h, at + row * width + lane, width, scale, entering, leaving, token * row_stride + row,
                direction * row_stride, lanes, out, token * width + lane, direction * width, count,
            )  # fmt: skip


@_compiled(_CONTRACT)
def _sweep_part(h, at, width, scale, entering, leaving, row, row_step, lanes, out, lane, lane_step, count):
    """`_sweep` for `ROWS` times `LANES` numbers, which stay in registers."""
    a = spread(scale)
    h0, h1 = product(a, load(h, at)), product(a, load(h, at + width))
    h2, h3 = product(a, load(h, at + 2 * width)), product(a, load(h, at + 3 * width))
    h4, h5 = product(a, load(h, at + 4 * width)), product(a, load(h, at + 5 * width))
    h6, h7 = product(a, load(h, at + 6 * width)), product(a, load(h, at + 7 * width))
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
