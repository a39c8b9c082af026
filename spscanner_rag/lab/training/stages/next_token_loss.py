"""Cross entropy of the next token, in bounded memory.

Logits of all tokens over the whole vocabulary would be the largest tensor in training a small language model:
16,384 tokens by a vocabulary of 16,384 are a gigabyte. Here the loss and its gradients are computed for a slice of
tokens at a time, and nothing is computed twice.
"""

from typing import Any

import torch
from torch import Tensor

SLICE_LOGITS = {"cpu": 2**23, "cuda": 2**27}
"""Logits in memory at a time, by type of device."""


def next_token_loss(hidden: Tensor, embedding: Tensor, targets: Tensor, dtype: torch.dtype) -> Tensor:
    """Cross entropy, summed over tokens, of predicting ``targets`` with the tied embedding: scalar.

    Parameters
    ----------
    hidden : (tokens, d_model)
    embedding : (vocabulary, d_model)
        Without padded rows.
    targets : (tokens,), integer
        The token that follows each.
    dtype : torch.dtype
        Arithmetic of matrix products; softmax, sums and the loss are float32.
    """
    gradients = torch.is_grad_enabled() and (hidden.requires_grad or embedding.requires_grad)
    loss: Tensor = _SlicedCrossEntropy.apply(hidden, embedding, targets, dtype, gradients)  # type: ignore[no-untyped-call]
    return loss


class _SlicedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401 - torch's own
        hidden: Tensor,
        embedding: Tensor,
        targets: Tensor,
        dtype: torch.dtype,
        gradients: bool,
    ) -> Tensor:
        """``hidden``: (tokens, d_model), ``embedding``: (vocabulary, d_model), ``targets``: (tokens,)."""
        rows = embedding.to(dtype)
        loss = torch.zeros((), device=hidden.device)
        d_hidden = torch.empty_like(hidden) if gradients else hidden.new_empty(0)
        d_embedding = torch.zeros_like(embedding, dtype=torch.float32) if gradients else hidden.new_empty(0)
        step = max(1, SLICE_LOGITS.get(hidden.device.type, 2**23) // len(embedding))
        for start in range(0, len(hidden), step):
            inside = slice(start, start + step)
            read, wanted = hidden[inside].to(dtype), targets[inside, None]
            logits = (read @ rows.T).float()  # (slice, vocabulary)
            logits -= logits.logsumexp(1, keepdim=True)
            loss -= logits.gather(1, wanted).sum()
            if gradients:
                error = logits.exp_().scatter_add_(1, wanted, -torch.ones_like(wanted, dtype=logits.dtype))
                error_rows = error.to(dtype)
                d_hidden[inside] = error_rows @ rows
                d_embedding += (error_rows.T @ read).float()
        ctx.save_for_backward(d_hidden, d_embedding)
        ctx.embedding_dtype = embedding.dtype
        return loss

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:  # noqa: ANN401 - torch's own
        """``gradients``: of the loss, a scalar."""
        d_hidden, d_embedding = ctx.saved_tensors
        scale = gradients[0]
        return d_hidden * scale, (d_embedding * scale).to(ctx.embedding_dtype), None, None, None
