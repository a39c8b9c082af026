"""What kernels share that read several sequences in one row."""

import torch
from torch import Tensor


def tail_after(xBC: Tensor, tail: Tensor, sequence_index: Tensor | None) -> Tensor:
    """The last inputs that belong to the last token's sequence: (batch, d_conv - 1, conv_dim)."""
    kept, tokens = tail.shape[1], xBC.shape[1]
    recent = torch.cat((tail.to(xBC.dtype), xBC[:, max(0, tokens - kept) :]), dim=1)
    first = recent.shape[1] - kept
    recent = recent[:, first:]
    if sequence_index is not None:
        index = torch.cat(
            (sequence_index.new_zeros(tail.shape[:2]), sequence_index[:, max(0, tokens - kept) :]), dim=1
        )
        others = index[:, first:] != sequence_index[:, -1:]  # (batch, d_conv - 1)
        recent = recent.masked_fill(others[..., None], 0.0)
    return recent.clone()  # so that the state does not keep the whole segment in memory
