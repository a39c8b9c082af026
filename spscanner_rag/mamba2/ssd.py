"""The state-space-dual (SSD) operator of Mamba-2, whose state goes from call to call.

For every head with state ``h`` of shape ``(headdim, d_state)`` and token ``t`` (Dao and
Gu 2024, "Transformers are SSMs", eq. 1 and section 6), computed by the block
decomposition of the paper's listing 1,

    h_t = exp(dt_t * A) * h_{t-1} + dt_t * outer(x_t, B_t)
    y_t = h_t @ C_t + D * x_t
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from spscanner_rag.mamba2.ssd_blocks import CHUNK_TOKENS, SMALLEST_LOG_DECAY


def ssd_chunked(
    x: Tensor,
    dt: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    D: Tensor,
    initial_state: Tensor,
    chunk_tokens: int = CHUNK_TOKENS,
) -> tuple[Tensor, Tensor]:
    """Compute the SSD operator by blocks.

    Inside a block it is a matrix product, between blocks a recurrence (Dao and Gu 2024,
    section 6).

    Parameters
    ----------
    x : Tensor (batch, tokens, heads, headdim)
        The inputs.
    dt : Tensor (batch, tokens, heads), float32
        The time steps after bias, softplus and clamping.
    A : Tensor (heads,), float32
        The negative decay rates.
    B, C : Tensor (batch, tokens, groups, d_state)
        Shared by ``heads / groups`` consecutive heads.
    D : Tensor (heads,) or (heads, headdim)
        Skip weights.
    initial_state : Tensor (batch, heads, headdim, d_state), float32
        The state before the first token.
    chunk_tokens : int
        Tokens per block; changes only rounding and speed.

    Returns
    -------
    tuple
        y, of the shape and dtype of ``x``, and the state after the last token.

    Examples
    --------
    >>> import torch
    >>> from spscanner_rag.mamba2.ssd import ssd_chunked
    >>> x = torch.ones(1, 3, 1, 1)  # three tokens, one head of one channel
    >>> ones = torch.ones(1, 3, 1, 1)
    >>> no_decay = torch.zeros(1)
    >>> state = torch.zeros(1, 1, 1, 1)
    >>> y, state = ssd_chunked(
    ...     x, torch.ones(1, 3, 1), no_decay, ones, ones, torch.zeros(1), state
    ... )
    >>> y.flatten().tolist()  # without decay, the state counts the tokens
    [1.0, 2.0, 3.0]
    """
    batch, tokens, heads, headdim = x.shape
    groups, d_state = B.shape[2:]

    # A time step of 0 neither decays the state nor adds to it, so zero padding leaves
    # the result as it is.
    chunk_tokens = min(chunk_tokens, tokens)
    padding = -tokens % chunk_tokens
    if padding:
        x = F.pad(x, (0, 0, 0, 0, 0, padding))
        B = F.pad(B, (0, 0, 0, 0, 0, padding))
        C = F.pad(C, (0, 0, 0, 0, 0, padding))
        dt = F.pad(dt, (0, 0, 0, padding))
    chunks = (tokens + padding) // chunk_tokens
    width = heads // groups * headdim  # channels per group

    # (batch, chunks, chunk_tokens, ...), then groups or heads before tokens for the
    # matrix products
    x = x.view(batch, chunks, chunk_tokens, heads, headdim)
    dt = dt.view(batch, chunks, chunk_tokens, heads)
    B = B.reshape(batch, chunks, chunk_tokens, groups, d_state).transpose(2, 3)
    C = C.reshape(batch, chunks, chunk_tokens, groups, d_state).transpose(2, 3)
    # from the block's start: (batch, chunks, chunk_tokens, heads)
    log_decay = torch.cumsum(dt * A, dim=2)
    # (batch, chunks, chunk_tokens, heads, headdim)
    driven = x * dt.to(x.dtype)[..., None]

    # 1. Inside a block: y_i = sum over j <= i of (C_i . B_j) * exp(decay from j to i) *
    # dt_j * x_j
    # (batch, chunks, groups, chunk_tokens, chunk_tokens)
    similarity = (C @ B.transpose(-1, -2)).tril()
    rows = log_decay.transpose(2, 3)  # (batch, chunks, heads, chunk_tokens)
    # Above the diagonal, where the similarity is 0, the difference is positive and
    # could overflow: hence _exp.
    mixing = _exp(rows[..., :, None] - rows[..., None, :]).to(x.dtype)
    mixing = mixing.view(batch, chunks, groups, -1, chunk_tokens, chunk_tokens)
    mixing = mixing * similarity.unsqueeze(3)
    # (batch, chunks, heads, chunk_tokens, headdim)
    inside = mixing.flatten(2, 3) @ driven.transpose(2, 3)

    # 2. Between blocks, in float32: the state at each block's start, decayed, plus what
    # the block adds to it
    to_end = _exp(log_decay[:, :, -1:] - log_decay).to(x.dtype)[..., None]
    ending = (driven * to_end).view(batch, chunks, chunk_tokens, groups, width)
    ending = ending.permute(0, 1, 3, 4, 2)
    added = (ending @ B).view(batch, chunks, heads, headdim, d_state).float()
    # (batch, chunks, heads, 1, 1)
    block_decay = _exp(log_decay[:, :, -1])[..., None, None]
    states = [initial_state]
    # unbind, not an index per block: the gradient of each index would be a tensor of
    # zeros of the full size
    for added_by_block, decay in zip(
        added.unbind(1), block_decay.unbind(1), strict=True
    ):
        states.append(torch.addcmul(added_by_block, decay, states[-1]))
    entering = torch.stack(states[:-1], dim=1).to(x.dtype)
    entering = entering.view(batch, chunks, groups, width, d_state)

    # 3. The output: the contributions of the state at the block's start, of the block's
    # own tokens and of the skip connection, added up in one tensor with the layout of
    # the result
    # (batch, chunks, chunk_tokens, groups, width)
    y = (C @ entering.transpose(-1, -2)).transpose(2, 3)
    y = y.reshape(x.shape).mul_(_exp(log_decay).to(x.dtype)[..., None])
    skip = D if D.dim() == 2 else D[:, None]
    y = y.add_(inside.transpose(2, 3)).addcmul_(x, skip.to(x.dtype))
    return y.reshape(batch, tokens + padding, heads, headdim)[:, :tokens], states[-1]


def _exp(log_decay: Tensor) -> Tensor:
    """Decay factors, clamped to avoid denormal numbers.

    With these, a CPU's exp is ten times slower.
    """
    return log_decay.clamp(SMALLEST_LOG_DECAY, 0.0).exp_()
