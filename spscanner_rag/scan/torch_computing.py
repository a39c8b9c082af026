"""Models that compute in torch, on any device."""

from pathlib import Path
from typing import Any

import torch

from spscanner_rag.checkpoint.load import Checkpoint, load_checkpoint
from spscanner_rag.mamba2.backends import choose_backend
from spscanner_rag.scan.computing import Computing
from spscanner_rag.scan.devices import choose


def torch_computing(
    backend: str, device: str | torch.device, dtype: str | torch.dtype
) -> Computing:
    """Choose device, dtype and kernels for `Scanner.from_pretrained`."""
    choice = choose(device, dtype)
    kernels, backend_reason = choose_backend(backend, choice.device)

    def load(name: str | Path | None, **options: Any) -> Checkpoint:  # noqa: ANN401
        checkpoint = load_checkpoint(
            name, device=choice.device, dtype=choice.dtype, **options
        )
        checkpoint.model.use_kernels(kernels)
        return checkpoint

    return Computing(load, choice.device_reason, choice.dtype_reason, backend_reason)
