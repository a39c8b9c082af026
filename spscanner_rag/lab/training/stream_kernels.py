"""The layers of a stream: sequences one after the other in one row, read in segments that pass gradients back."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.kernels.torch import Kernels, ScanOperands, depthwise_by_image, time_steps
from spscanner_rag.mamba2.ssd import CHUNK_TOKENS, ssd_chunked


class StreamKernels(Kernels):
    """Plain torch on one row of sequences with gaps between them, for a CPU.

    A sequence begins at a multiple of `CHUNK_TOKENS`, and at least ``d_conv - 1`` tokens of padding come before
    the next one. They have the sequence's own number, and are cleared so that the convolution of the next sequence
    starts from zeros. A segment of the row has whole chunks. Unlike those of `Kernels`, the states returned
    pass gradients back to the tokens before.
    """

    name = "stream"
    packs = True

    def convolve(
        self, conv1d: nn.Conv1d, xBC: Tensor, tail: Tensor, sequence_index: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """As in `Kernels`, each sequence by itself."""
        assert sequence_index is not None
        kept = xBC.shape[1] - conv1d.kernel_size[0] + 1  # tokens before the tail of this segment
        followed = sequence_index[:, -kept:] == sequence_index[:, :kept]
        inside = F.pad(followed, (0, xBC.shape[1] - kept), value=True)  # (1, tokens)
        continues = sequence_index[:, :1] == 0  # (1, 1): whether the first sequence began before the segment
        own = torch.cat((tail.to(xBC.dtype) * continues.unsqueeze(-1), xBC * inside.unsqueeze(-1)), dim=1)
        # as in `Kernels`: in bfloat16 the backward pass is several times slower
        with torch.autocast(xBC.device.type, enabled=False):
            bias = None if conv1d.bias is None else conv1d.bias.float()
            out = depthwise_by_image(own.float(), conv1d.weight.float(), bias)
        # contiguous, since the compiler makes another graph for each memory layout
        return F.silu(out).to(xBC.dtype), xBC[:, kept:].contiguous()

    def scan(
        self, operands: ScanOperands, state: Tensor, config: Mamba2Config, sequence_index: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """With `ssd_chunked`, each sequence by itself."""
        assert sequence_index is not None
        x, _, _, A, B, C, D = operands
        dt = time_steps(operands, config)  # (1, tokens, nheads)
        numbers = F.pad(sequence_index[:, ::CHUNK_TOKENS], (1, 0))  # (1, 1 + chunks)
        return ssd_chunked(x, dt, A, B, C, D, state, starts=numbers[:, 1:] != numbers[:, :-1])
