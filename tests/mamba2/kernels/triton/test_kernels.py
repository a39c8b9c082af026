"""How many tokens mamba-ssm's kernels can take, with offsets of 32 bits.

No kernel runs here.
"""

from typing import Any

import pytest
import torch

from spscanner_rag.checkpoint import load_checkpoint
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.kernels.torch import TORCH_KERNELS, ScanOperands
from spscanner_rag.mamba2.kernels.triton.kernels import MambaKernels
from spscanner_rag.scanner import Scanner

SMALL = Mamba2Config(d_model=768, n_layer=24, vocab_size=50288)
LARGE = Mamba2Config(d_model=2048, n_layer=48, vocab_size=50288)
WIDE_STATE = Mamba2Config(d_model=64, n_layer=1, vocab_size=8, d_state=4096)
MANY_GROUPS = Mamba2Config(
    d_model=256, n_layer=1, vocab_size=8, d_state=1, headdim=1, ngroups=512
)


def kernels(scan: Any = None) -> MambaKernels:
    return MambaKernels(
        type("Operators", (), {"mamba_chunk_scan_combined": staticmethod(scan)})
    )  # type: ignore[arg-type]


@pytest.mark.parametrize("config", [SMALL, LARGE, WIDE_STATE, MANY_GROUPS])
def test_every_offset_stays_below_32_bits(config: Mamba2Config) -> None:
    tokens = kernels().most_tokens(config)
    chunks = tokens // config.chunk_size
    assert tokens == chunks * config.chunk_size > 0
    sizes = [
        tokens * config.d_in_proj,
        chunks * config.ngroups * config.chunk_size**2,
        chunks * config.d_inner * config.d_state,
    ]
    assert max(sizes) < 2**31
    # and no fewer tokens than necessary
    assert max(sizes) * (chunks + 1) / chunks >= 2**31


def test_scanner_lowers_segment_tokens(tiny_checkpoint: Any) -> None:
    checkpoint = load_checkpoint(tiny_checkpoint)
    assert Scanner(checkpoint, segment_tokens=10**12).segment_tokens == 10**12
    checkpoint.model.use_kernels(kernels())
    most = kernels().most_tokens(checkpoint.model.config)
    assert Scanner(checkpoint, segment_tokens=10**12).segment_tokens == most < 2**31
    assert Scanner(checkpoint, segment_tokens=77).segment_tokens == 77
    checkpoint.model.use_kernels(TORCH_KERNELS)


@pytest.mark.parametrize("rows", [1, 3])
def test_more_are_refused(rows: int) -> None:
    seen = []

    def scan(x: torch.Tensor, *_: object, **__: object) -> tuple[torch.Tensor, None]:
        seen.append(x.shape[:2])
        return x, None

    def give(tokens: int) -> None:
        x = torch.empty(1, 1, SMALL.nheads, 1, dtype=torch.bfloat16).expand(
            rows, tokens, -1, -1
        )
        none = torch.empty(0)
        operands = ScanOperands(x, none, none, none, none, none, none)
        kernels(scan).scan(operands, none, SMALL, None)

    most = kernels().most_tokens(SMALL) // rows
    give(most)
    with pytest.raises(
        ValueError,
        match=f"tokens in one pass; expected at most {most * rows:,}|smaller",
    ):
        give(most + rows)
    assert seen == [(rows, most)]
