"""Which kernels compute a model's layers, and why."""

from typing import NamedTuple

import torch

from spscanner_rag.mamba2.kernels import TORCH_KERNELS, Kernels
from spscanner_rag.mamba2.mamba_ssm_operators import INSTALL, interpreting
from spscanner_rag.mamba2.triton_kernels import load_kernels

BACKENDS = ("auto", "torch", "mamba-ssm")


class BackendChoice(NamedTuple):
    """The kernels of a backend, with the reason they were taken."""

    kernels: Kernels
    reason: str


def choose_backend(backend: str, device: torch.device) -> BackendChoice:
    """Load a backend's kernels for a device; "auto" is mamba-ssm on an NVIDIA GPU if installed, else torch.

    Raises ``ValueError`` for an unknown backend or a device that mamba-ssm's kernels do not run on, and
    ``ImportError`` if mamba-ssm was asked for by name and cannot be loaded.
    """
    if not isinstance(backend, str) or backend not in BACKENDS:
        raise ValueError(f"backend is {backend!r}; expected 'auto', 'torch' or 'mamba-ssm'")
    if backend == "torch":
        return BackendChoice(TORCH_KERNELS, "as asked for")
    if backend == "mamba-ssm":
        if device.type != "cuda" and not (device.type == "cpu" and interpreting()):
            raise ValueError(
                f"backend is 'mamba-ssm', which runs on CUDA devices only; got the device {str(device)!r}: "
                f"use backend='torch'; on a machine with an NVIDIA GPU, {INSTALL}"
            )
        return BackendChoice(load_kernels(), "as asked for")
    if device.type != "cuda" or torch.version.cuda is None:
        return BackendChoice(TORCH_KERNELS, "mamba-ssm's kernels are for NVIDIA GPUs")
    try:
        return BackendChoice(load_kernels(), "the device is CUDA and mamba-ssm is installed")
    except ImportError as error:
        return BackendChoice(TORCH_KERNELS, str(error))
