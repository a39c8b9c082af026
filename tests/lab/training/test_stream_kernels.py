import torch
from torch import nn

from spscanner_rag.lab.training.stream_kernels import StreamKernels
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.kernels.torch import TORCH_KERNELS, ScanOperands
from spscanner_rag.mamba2.ssd import CHUNK_TOKENS

FIRST = CHUNK_TOKENS  # tokens of the sequence that the state belongs to, gap included
INDEX = torch.tensor([[0] * FIRST + [1] * 2 * CHUNK_TOKENS], dtype=torch.int32)
PARTS = (slice(0, FIRST), slice(FIRST, None))


def test_each_sequence_is_convolved_by_itself() -> None:
    torch.manual_seed(0)
    conv1d = nn.Conv1d(6, 6, 4, groups=6)
    inputs, tail = torch.randn(1, INDEX.shape[1], 6), torch.randn(1, 3, 6)
    out, last = StreamKernels().convolve(conv1d, inputs, tail, INDEX)
    torch.testing.assert_close(last, inputs[:, -3:])
    for part, before in zip(PARTS, (tail, torch.zeros_like(tail)), strict=True):
        alone, _ = TORCH_KERNELS.convolve(conv1d, inputs[:, part], before, None)
        gap = 3 if part.start == 0 else 0  # its tokens are cleared
        kept = slice(0, alone.shape[1] - gap)
        torch.testing.assert_close(out[:, part][:, kept], alone[:, kept])


def test_a_segment_that_begins_with_another_sequence_ignores_the_state() -> None:
    torch.manual_seed(0)
    config = Mamba2Config(d_model=8, n_layer=1, vocab_size=16, d_state=4, headdim=4)
    tokens, heads = CHUNK_TOKENS, config.nheads
    operands = ScanOperands(
        torch.randn(1, tokens, heads, 4),
        torch.randn(1, tokens, heads),
        torch.randn(heads),
        -torch.rand(heads),
        torch.randn(1, tokens, 1, 4),
        torch.randn(1, tokens, 1, 4),
        torch.randn(heads),
    )
    state = torch.randn(1, heads, 4, 4)
    for number, before in ((0, state), (1, torch.zeros_like(state))):
        index = torch.full((1, tokens), number, dtype=torch.int32)
        found = StreamKernels().scan(operands, state, config, index)
        for got, expected in zip(found, TORCH_KERNELS.scan(operands, before, config, None), strict=True):
            torch.testing.assert_close(got, expected)
