"""The Triton version of a Mamba-2 layer: mamba-ssm's operators, for `backend="mamba-ssm"`.

Rounding: with bfloat16 weights, products of bfloat16 numbers are summed in float32; decays, sums of decays and the
state are float32. With float32 weights, factors are float32, where Triton's default would be TF32 (10 bits).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from spscanner_rag.mamba2.kernels.packing import tail_after
from spscanner_rag.mamba2.kernels.torch import Kernels, ScanOperands
from spscanner_rag.mamba2.kernels.triton.operators import Operators, load_operators

if TYPE_CHECKING:
    from spscanner_rag.mamba2.config import Mamba2Config
    from spscanner_rag.mamba2.kernels.torch import GatedRMSNorm

OFFSETS = 2**31
"""The kernels count elements in 32 bits: past this many they return wrong numbers without an error
(state-spaces/mamba issue 1015)."""

SMALLEST_CHUNK, LARGEST_CHUNK = 16, 256  # the range of tokens per chunk that the kernels support

# Held during a launch, because autotuned kernels store their arguments on themselves and Triton's settings are
# global. It does not serialize the GPU's own work.
_launching = threading.Lock()


def load_kernels() -> Kernels:
    """Load the kernels; raises ``ImportError`` as `load_operators`."""
    return MambaKernels(load_operators())


class MambaKernels(Kernels):
    """mamba-ssm's scan and gated norm, and our own convolution."""

    name = "mamba-ssm"
    packs = True

    def __init__(self, operators: Operators) -> None:
        self._operators = operators

    def __reduce__(self) -> tuple[Callable[[], Kernels], tuple[()]]:
        # loaded kernels cannot be copied to another process, but it can load its own
        return load_kernels, ()

    def most_tokens(self, config: Mamba2Config) -> int:
        """The most for which offsets in the largest tensor fit 32 bits."""
        chunk = _chunk_tokens(config)
        per_chunk = max(
            chunk * config.d_in_proj,  # the projection, whose parts the kernels read in place
            config.ngroups * chunk * chunk,  # products of C and B
            config.d_inner * config.d_state,  # states at the chunks' ends
        )
        return (OFFSETS - 1) // per_chunk * chunk

    def convolve(
        self, conv1d: nn.Conv1d, xBC: Tensor, tail: Tensor, sequence_index: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """With one kernel of our own."""
        from spscanner_rag.mamba2.kernels.triton.convolution import convolve

        out = convolve(xBC, tail, conv1d.weight, conv1d.bias, sequence_index)
        return out, tail_after(xBC, tail, sequence_index)

    def scan(
        self, operands: ScanOperands, state: Tensor, config: Mamba2Config, sequence_index: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """With ``mamba_chunk_scan_combined``. Raises ``ValueError`` for more than `most_tokens`."""
        x, dt, dt_bias, A, B, C, D = operands
        most = self.most_tokens(config)
        if x.shape[0] * x.shape[1] > most:
            raise ValueError(
                f"{x.shape[0] * x.shape[1]:,} tokens in one pass; expected at most {most:,}, beyond which "
                "mamba-ssm's kernels give wrong numbers: use a smaller segment_tokens"
            )
        with _launching, _exact_products(x.dtype):
            y, final_state = self._operators.mamba_chunk_scan_combined(
                x,
                dt,
                A,
                B,
                C,
                _chunk_tokens(config),
                D=D,
                dt_bias=dt_bias.float(),
                initial_states=state,
                seq_idx=sequence_index,
                dt_softplus=True,
                dt_limit=config.dt_limit,
                return_final_states=True,
            )
        return y, final_state

    def gated_norm(self, norm: GatedRMSNorm, y: Tensor, z: Tensor) -> Tensor:
        """With ``rmsnorm_fn``."""
        if not y.numel():
            return y
        normed: Tensor = self._operators.rmsnorm_fn(
            y,
            norm.weight,
            None,
            z,
            eps=norm.epsilon,
            group_size=y.shape[-1] // norm.groups,
            norm_before_gate=norm.norm_before_gate,
        )
        return normed


def _chunk_tokens(config: Mamba2Config) -> int:
    """The checkpoint's chunk size, rounded down to a power of 2 within the supported range."""
    power: int = 2 ** int(math.log2(config.chunk_size))
    return min(max(power, SMALLEST_CHUNK), LARGEST_CHUNK)


@contextmanager
def _exact_products(dtype: torch.dtype) -> Iterator[None]:
    """Multiply float32 numbers in float32, not TF32, in kernels that are compiled within this context."""
    if dtype != torch.float32:
        yield
        return
    import triton

    with triton.knobs.language.scope():
        triton.knobs.language.fp32_default = "ieee"
        yield
