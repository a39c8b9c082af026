"""The gradients of the state-space operator (`spscanner_rag.mamba2.ssd`), compiled by numba.

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
that H itself need not be multiplied at every token. Flat arrays are as in `mamba2.kernels.numba.steps`.
"""

# numba compiles these functions: their types are those of their arguments.
# ruff: noqa: ANN001, ANN201, ANN202

from __future__ import annotations

import numpy as np

from spscanner_rag.lab.training.kernels.rows import clear, narrow, padded, widen
from spscanner_rag.mamba2.kernels.numba.steps import (
    KEPT_TOKENS,
    ROWS,
    SMALLEST,
    from_lanes,
    rounded,
    sweep_part,
    to_lanes,
)
from spscanner_rag.mamba2.kernels.numba.vectors import (
    CONTRACT,
    LANES,
    SUMS,
    compiled,
    flushed,
    load,
    product,
    spread,
    store,
    total,
)

SMALLEST_DECAY = np.float32(1e-14)  # a run of tokens ends before the product of its decays becomes smaller

_FORGOTTEN = np.float32(1e-8)  # after smaller decays the gradient of their logarithm is below rounding errors
_ONE, _ZERO = np.float32(1.0), np.float32(0.0)


@compiled(SUMS, keep=True)
def scan_backwards(
    x, B, C, dy, x_stride, B_stride, C_stride, dy_stride, dt, decay, skip, groups, kept, d_state_after,
    d_state_before, dx, dB, dC, d_dt, d_log_decay, d_skip, first, last,
):  # fmt: skip
    """The gradients of `steps.scan_heads`, whose arguments it shares, for the heads ``first`` to ``last``.

    ``decay`` is 0 where a sequence starts; ``kept``, (blocks + 1, heads, headdim, d_state), has the state before
    each `KEPT_TOKENS` tokens and that after the last; ``dy`` is (tokens, heads, headdim), ``d_state_after`` the
    gradient of the state after the last token. Written are ``d_state_before``, ``dx``, (tokens, heads, headdim),
    ``d_dt``, the gradient through dt x, and ``d_log_decay``, both (tokens, heads); added to are ``dB`` and ``dC``,
    (tokens, groups, d_state), float32, and ``d_skip``, (heads, headdim).
    """
    tokens, heads = dt.shape
    _, headdim, d_state = d_state_after.shape
    wide, tall = rounded(headdim, LANES), rounded(d_state, ROWS)  # of d_state rows and headdim lanes
    long, high = rounded(d_state, LANES), rounded(headdim, ROWS)  # of headdim rows and d_state lanes
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
    lanes = np.empty(LANES, np.float32)
    written = dx.reshape(-1)
    products, runs = np.empty(KEPT_TOKENS, np.float32), np.empty(KEPT_TOKENS + 1, np.int64)
    for head in range(first, last):
        to_lanes(d_state_after[head], g, (head - first) * tall * wide, wide)
        to_rows(d_state_after[head], g_too, (head - first) * high * long, long)
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
            flush(g_too, at_too, high * long)
            # the gradient of the logarithm of the first decay after the block
            change = pending * inner_product(g_too, at_too, long, kept[block + 1, head])
            to_rows(kept[block, head], h, 0, long)
            amount = _runs(decay, start, head, count, products, runs)
            widen(x, start * x_stride + head * headdim, x_stride, headdim, numbers, wide, count)
            widen(dy, start * dy_stride + head * headdim, dy_stride, headdim, slopes, wide, count)
            for t in range(count):
                step, factor = spread(np.float32(dt[start + t, head] / products[t])), spread(products[t])
                for p in range(t * wide, (t + 1) * wide, LANES):
                    store(u, p, product(load(numbers, p), step))
                    store(rows_dy, p, flushed(product(load(slopes, p), factor), SMALLEST))
            clear(du, 0, count * wide)
            clear(own_C, 0, count * long)
            scale = _ONE
            for run in range(amount):
                begin, end = runs[run], runs[run + 1]
                scale *= decay[start + begin, head]
                sweep(h, 0, high, long, scale, u, rows_dy, wide, rows_B, own_C, begin, 1, end - begin)
                scale = products[end - 1]
            for run in range(amount - 1, -1, -1):
                begin, end = runs[run], runs[run + 1]
                length, scale = end - begin, pending * products[end - 1]
                sweep(g, at, tall, wide, scale, rows_C, rows_B, long, rows_dy, du, end - 1, -1, length)
                sweep(g_too, at_too, high, long, scale, rows_dy, u, wide, rows_C, sum_B, end - 1, -1, length)
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
                of_x = total_of_lanes(of_u, lanes)
                # The product of the state and its gradient, from token to token: what leaves by y was in it
                # before, what enters by u was not.
                change += total_of_lanes(of_y, lanes) - of_x * step
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
        own = head - first
        from_lanes(g_too, own * high * long, long, pendings[own], d_state_before[head].T)
        for p in range(headdim):
            d_skip[head, p] += sum_skip[head * wide + p]


@compiled(CONTRACT)
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


@compiled(CONTRACT)
def to_rows(state, h, at, width):
    """Write a state as a matrix with headdim as its rows."""
    for p in range(state.shape[0]):
        h[at + p * width : at + p * width + state.shape[1]] = state[p]


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


@compiled(SUMS, inline="always")
def total_of_lanes(vector, lanes):
    """The sum of a vector's numbers, which are put into ``lanes``."""
    store(lanes, 0, vector)
    result = _ZERO
    for lane in range(LANES):
        result += lanes[lane]
    return result
