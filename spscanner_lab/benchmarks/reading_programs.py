"""Programs that read a document's tokens: our backends, mamba-ssm and transformers."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from spscanner_lab.benchmarks.machine_limits import TOKENS_PER_UNIT

if TYPE_CHECKING:
    import torch

    from spscanner_rag.mamba2.kernels.torch import Kernels
    from spscanner_rag.mamba2.model import ScannerModel

OURS = ("mamba-ssm", "numba", "torch")
KINDS = (*OURS, "plain mamba-ssm", "transformers")

_MIXERS = "mamba_ssm.models.mixer_seq_simple"
_MAMBA_1 = "selective_scan_cuda"

Forward = Callable[["torch.Tensor"], object]


class NotMeasuredError(Exception):
    """A measurement is not possible here, and the message says why."""


def forward_of(
    kind: str, folder: Path, device: torch.device, dtype: torch.dtype
) -> Forward:
    """Return a function that reads ids, (tokens,), with the weights in a folder.

    Raises `NotMeasuredError`.
    """
    if kind in OURS:
        return partial(_by_segments, our_model(kind, folder, device, dtype))
    if kind == "plain mamba-ssm":
        return _plain(folder, device, dtype)
    from transformers import Mamba2Model

    model = Mamba2Model.from_pretrained(folder, dtype=dtype).to(device).eval()
    return lambda ids: model(ids[None].to(device), use_cache=False)[0].sum().item()


def _plain(folder: Path, device: torch.device, dtype: torch.dtype) -> Forward:
    """mamba-ssm's own model, which reads a document in one piece.

    It has other weights of the same shapes.
    """
    from spscanner_rag.checkpoint.bounded_files import read_json
    from spscanner_rag.checkpoint.config import read_config
    from spscanner_rag.mamba2.kernels.triton.kernels import import_modules

    try:
        kernels_of("mamba-ssm", device)
        with _without_mamba_1():
            models = import_modules([_MIXERS])
    except ImportError as error:
        raise NotMeasuredError(str(error)) from error
    config = read_config(read_json(folder / "config.json"))
    has_convolution = importlib.util.find_spec("causal_conv1d") is not None
    layer: dict[str, object] = {
        "layer": "Mamba2",
        "d_state": config.d_state,
        "headdim": config.headdim,
        "use_mem_eff_path": has_convolution,  # this path needs it
    }
    model = models[_MIXERS].MixerModel(
        config.d_model,
        config.n_layer,
        0,
        config.vocab_size,
        layer,
        rms_norm=True,
        fused_add_norm=True,
        residual_in_fp32=True,
        device=device,
        dtype=dtype,
    )

    def forward(ids: torch.Tensor) -> object:
        if len(ids) * config.d_in_proj >= 2**31:
            raise NotMeasuredError("offsets of this many tokens at once exceed 32 bits")
        return model(ids[None].to(device)).sum().item()

    return forward


@contextmanager
def _without_mamba_1() -> Iterator[None]:
    """Import with an empty module in place of Mamba-1's extension, unused here.

    Afterwards the process has what it had: other code finds no empty module.
    """
    if _MAMBA_1 in sys.modules:
        yield
        return
    sys.modules[_MAMBA_1] = ModuleType(_MAMBA_1)
    try:
        yield
    finally:
        del sys.modules[_MAMBA_1]


def our_model(
    kind: str, folder: Path, device: torch.device, dtype: torch.dtype
) -> ScannerModel:
    """The model in a folder, with the kernels of one of our backends."""
    from spscanner_rag.checkpoint import load_model

    model = load_model(folder, device=device, dtype=dtype, require_head=False)
    model.use_kernels(kernels_of(kind, device))
    return model


def kernels_of(kind: str, device: torch.device) -> Kernels:
    """The kernels of one of our backends. Raises `NotMeasuredError`."""
    from spscanner_rag.mamba2.backends import choose_backend

    try:
        return choose_backend(kind, device).kernels
    except (ImportError, ValueError) as error:
        raise NotMeasuredError(str(error)) from error


def _by_segments(model: ScannerModel, input_ids: torch.Tensor) -> object:
    """Read as `Scanner` does, with a logit for every unit."""
    import numpy as np

    from spscanner_rag.mamba2.reader import read_logits
    from spscanner_rag.mamba2.token_sequences import TokenSequence
    from spscanner_rag.scan.segment_tokens import default_segment_tokens

    ends = np.arange(TOKENS_PER_UNIT - 1, len(input_ids), TOKENS_PER_UNIT)
    sequence = TokenSequence(input_ids.numpy().astype(np.int32), ends)
    segment_tokens = default_segment_tokens(model.device.type, model.config)
    return read_logits(model, [sequence], segment_tokens)
