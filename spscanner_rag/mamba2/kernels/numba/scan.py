"""The state-space operator (`spscanner_rag.mamba2.ssd`) for reading, token by token, compiled by numba.

Flat arrays are as in `numba_steps`; `numba_sweeps` has the operator for training.
"""

# numba compiles these functions: their types are those of their arguments.
# ruff: noqa: ANN001, ANN201, ANN202

from __future__ import annotations

import numpy as np

from spscanner_rag.mamba2.kernels.numba.compiling import CONTRACT, as_float32, as_kind_of, compiled
from spscanner_rag.mamba2.kernels.numba.states import ROWS, from_lanes, rounded, sweep_part, to_lanes
from spscanner_rag.mamba2.kernels.numba.vectors import LANES, load, product, spread, store, total

BLOCK_TOKENS = 32
"""Tokens for which the inputs of a head are kept in the cache while its state is advanced, some rows at a time."""

SMALLEST_PRODUCT = np.float32(1e-15)
"""The decays of tokens that are read together are multiplied, and the state gets the product at their end. Only so
many tokens are read together that the product does not become smaller than this."""

_ONE, _ZERO = np.float32(1.0), np.float32(0.0)


@compiled(CONTRACT, keep=True)
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
    width, rows = rounded(headdim, LANES), rounded(d_state, ROWS)
    whole = headdim - headdim % LANES
    # the states, (heads, rows, width): headdim is innermost
    h = np.zeros((last - first) * rows * width, np.float32)
    ahead = np.ones(last - first, np.float32)  # the product that each head's state still lacks
    driven = np.zeros(BLOCK_TOKENS * width, np.float32)  # dt x, divided by the product
    y = np.zeros(BLOCK_TOKENS * width, np.float32)
    products = np.ones(BLOCK_TOKENS, np.float32)
    pairs = np.zeros(rows * BLOCK_TOKENS * 2, np.float32)  # B and C, by rows of the state
    pairs_C = pairs[ROWS:]
    for head in range(first, last):
        to_lanes(state[head], h, (head - first) * rows * width, width)
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
                for n in range(0, rows, ROWS):
                    pair = (n * BLOCK_TOKENS + begin * ROWS) * 2
                    for p in range(0, width, LANES):
                        sweep_part(
                            own, n * width + p, width, factor, pairs, pairs_C, pair, 2 * ROWS,
                            driven, y, begin * width + p, width, end - begin,
                        )  # fmt: skip
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
        from_lanes(h, (head - first) * rows * width, width, ahead[head - first], state[head])


@compiled(CONTRACT)
def _interleave(B, C, pairs, t):
    """Put B and C of token ``t`` of a block where `sweep_part` reads them: in turn `ROWS` of each."""
    for n in range(0, len(B), ROWS):
        to = (n * BLOCK_TOKENS + t * ROWS) * 2
        for i in range(min(ROWS, len(B) - n)):
            pairs[to + i] = as_float32(B[n + i])
            pairs[to + ROWS + i] = as_float32(C[n + i])
