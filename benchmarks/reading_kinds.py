"""The programs that read a document of random ids, with weights of the same shape."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.published_path import NotMeasuredError, published_forward

if TYPE_CHECKING:
    import torch

    from spscanner_rag.mamba2.config import Mamba2Config
    from spscanner_rag.mamba2.kernels.torch import Kernels
    from spscanner_rag.mamba2.model import ScannerModel

OURS = ("mamba-ssm", "numba", "torch")
COMPILED = "torch-compiled"
"""Our model after torch.compile. The package does not offer it; `docs/performance.md` says why."""

KINDS = (*OURS, COMPILED, "published", "transformers")
TOKENS_PER_UNIT = 25

Forward = Callable[["torch.Tensor"], object]


def forward_of(
    kind: str, folder: Path, config: Mamba2Config, device: torch.device, dtype: torch.dtype
) -> Forward:
    """A function that reads ids (tokens,) with the weights in a folder. Raises `NotMeasuredError`."""
    if not dtype.is_floating_point and kind not in (*OURS, COMPILED):
        raise NotMeasuredError(f"{kind} is measured in floating point only")
    if kind == "published":
        return published_forward(config, device, dtype)
    if kind == "transformers":
        from transformers import Mamba2Model

        from spscanner_rag.baselines.loading import load

        theirs = load(partial(Mamba2Model.from_pretrained, dtype=dtype), folder).to(device).eval()
        return partial(_by_transformers, theirs)
    if kind == COMPILED:
        return partial(_by_segments, _compiled(load_ours("torch", folder, device, dtype)))
    return partial(_by_segments, load_ours(kind, folder, device, dtype))


def load_ours(kind: str, folder: Path, device: torch.device, dtype: torch.dtype) -> ScannerModel:
    """Our model with the kernels of a backend. Raises `NotMeasuredError`."""
    from spscanner_rag.checkpoint import load_model

    kernels = kernels_of(kind, device)
    model = load_model(folder, device=device, dtype=dtype, require_head=False)
    model.use_kernels(kernels)
    return model


def kernels_of(kind: str, device: torch.device) -> Kernels:
    """The kernels of one of our backends. Raises `NotMeasuredError`."""
    from spscanner_rag.mamba2.backends import choose_backend

    try:
        return choose_backend(kind, device).kernels
    except (ImportError, ValueError) as error:
        raise NotMeasuredError(str(error)) from error


def _compiled(model: ScannerModel) -> ScannerModel:
    """Compile all layers but the last, whose number of units, and so its shape, differs between segments."""
    for layer in model.backbone.layers[:-1]:
        layer.compile(dynamic=False)
    return model


def _by_segments(model: ScannerModel, input_ids: torch.Tensor) -> object:
    """Read as `Scanner` does, with a logit for every unit."""
    import numpy as np

    from spscanner_rag.mamba2.reader import TokenSequence, read_logits
    from spscanner_rag.scan.devices import default_segment_tokens

    ends = np.arange(TOKENS_PER_UNIT - 1, len(input_ids), TOKENS_PER_UNIT)
    sequence = TokenSequence(input_ids.numpy().astype(np.int32), ends)
    return read_logits(model, [sequence], default_segment_tokens(model.device.type, model.config))


def _by_transformers(model: Any, input_ids: torch.Tensor) -> object:  # noqa: ANN401 - half typed
    return model(input_ids[None].to(model.device), use_cache=False)[0].sum().item()
