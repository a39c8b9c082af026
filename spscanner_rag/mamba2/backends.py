"""Choose the kernels that compute a model's layers, with the reason."""

import importlib.util
from typing import NamedTuple

import torch

from spscanner_rag.mamba2.kernels.torch import TORCH_KERNELS, Kernels
from spscanner_rag.mamba2.kernels.triton.kernels import load_kernels
from spscanner_rag.mamba2.kernels.triton.operators import INSTALL, interpreting
from spscanner_rag.text.extras import install_line

BACKENDS = ("auto", "torch", "numba", "mamba-ssm")

_INSTALL_NUMBA = install_line("cpu")


class BackendChoice(NamedTuple):
    """The kernels of a backend, with the reason they were taken."""

    kernels: Kernels
    reason: str


def check_backend(backend: object) -> None:
    """Raise ``ValueError`` for anything but the name of a backend."""
    if not isinstance(backend, str) or backend not in BACKENDS:
        raise ValueError(f"backend is {backend!r}; expected 'auto', 'torch', 'numba' or 'mamba-ssm'")


def choose_backend(backend: str, device: torch.device) -> BackendChoice:
    """Load a backend's kernels; "auto" is mamba-ssm on NVIDIA, numba on a CPU, where installed, else torch.

    Raises ``ValueError`` for an unknown backend or a device that its kernels do not run on, and ``ImportError``
    if a backend was asked for by name and cannot be loaded.
    """
    check_backend(backend)
    if backend == "torch":
        return BackendChoice(TORCH_KERNELS, "as asked for")
    if backend == "numba":
        if device.type != "cpu":
            raise ValueError(
                f"backend is 'numba', which runs on CPUs only; got the device {str(device)!r}: "
                "use backend='auto'"
            )
        return BackendChoice(_numba_kernels(), "as asked for")
    if backend == "mamba-ssm":
        if device.type != "cuda" and not (device.type == "cpu" and interpreting()):
            raise ValueError(
                f"backend is 'mamba-ssm', which runs on CUDA devices only; got the device {str(device)!r}: "
                f"use backend='torch'; on a machine with an NVIDIA GPU, {INSTALL}"
            )
        return BackendChoice(load_kernels(), "as asked for")
    return _automatic(device)


def _automatic(device: torch.device) -> BackendChoice:
    try:
        if device.type == "cpu":
            return BackendChoice(_numba_kernels(), "numba is installed")
        if device.type == "cuda" and torch.version.cuda is not None:
            return BackendChoice(load_kernels(), "the device is CUDA and mamba-ssm is installed")
    except ImportError as error:
        return BackendChoice(TORCH_KERNELS, str(error))
    return BackendChoice(TORCH_KERNELS, "the other kernels are for NVIDIA GPUs and CPUs")


def _numba_kernels() -> Kernels:
    if importlib.util.find_spec("numba") is None:
        raise ImportError(f"numba is not installed; {_INSTALL_NUMBA}")
    try:
        from spscanner_rag.mamba2.kernels.numba.kernels import NumbaKernels
    except Exception as error:  # numba refuses to load beside a numpy that it does not know, for example
        raise ImportError(f"numba cannot be loaded ({error}); {_INSTALL_NUMBA}") from error
    return NumbaKernels()
