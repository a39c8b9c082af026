"""Rows of matrices in 4 bits, as `encoder.four_bit_blocks` has them, in torch."""

import torch
from torch import Tensor

from spscanner_rag.encoder.four_bit_blocks import BLOCK_BYTES, SCALE_BYTES, ZERO


class FourBitRows:
    """The rows of a matrix, each restored only when it is looked up.

    An embedding of 250,000 words of width 384 takes 54 MB, and 384 MB in float32.

    Parameters
    ----------
    blocks : Tensor of uint8, (rows, blocks, `BLOCK_BYTES`)
        The stored blocks.
    dtype : torch.dtype, default torch.float32
        What rows are restored to.

    Examples
    --------
    >>> import torch
    >>> from spscanner_rag.encoder.four_bit import FourBitRows
    >>> scale = torch.tensor([0.5], dtype=torch.float16).view(torch.uint8)
    >>> halves = torch.full((16,), 0x9A, dtype=torch.uint8)  # 10 and 9, minus 8
    >>> rows = FourBitRows(torch.cat([scale, halves])[None, None])
    >>> rows[torch.tensor([0])][0, [0, 31]].tolist()
    [1.0, 0.5]
    """

    def __init__(self, blocks: Tensor, dtype: torch.dtype = torch.float32) -> None:
        if blocks.dtype != torch.uint8 or blocks.shape[2:] != (BLOCK_BYTES,):
            raise ValueError(
                f"blocks are {blocks.dtype} of shape {list(blocks.shape)}; expected"
                f" bytes of shape (rows, blocks, {BLOCK_BYTES})"
            )
        self.blocks = blocks
        self.dtype = dtype

    def __len__(self) -> int:
        return len(self.blocks)

    def __getitem__(self, numbers: Tensor) -> Tensor:
        """Return the rows with these numbers, (rows,): (rows, columns)."""
        return restored_blocks(self.blocks[numbers], self.dtype)


def restored_blocks(blocks: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return the matrix of blocks, (rows, blocks, bytes): (rows, columns)."""
    scales = blocks[..., :SCALE_BYTES].contiguous().view(torch.float16)
    halves = blocks[..., SCALE_BYTES:]
    numbers = torch.cat([halves & 15, halves >> 4], dim=-1).float() - ZERO
    return (numbers * scales.float()).flatten(1).to(dtype)
