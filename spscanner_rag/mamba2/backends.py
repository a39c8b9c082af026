"""Choose the kernels that compute a model's layers, with the reason.

Kernels of other libraries than torch are modules, each of which is imported by name
when it is first chosen.
"""

import importlib.util
from importlib import import_module
from typing import NamedTuple

import torch

from spscanner_rag.mamba2.backend_names import check_backend
from spscanner_rag.mamba2.kernels.torch import TORCH_KERNELS, Kernels
from spscanner_rag.system.install_hints import install_line

# without the packages that only mamba-ssm's other models and its CUDA extensions need
INSTALL_TRITON = (
    f"with PyTorch for your CUDA, {install_line('cuda')}, then `pip install setuptools"
    " wheel`, then `MAMBA_FORCE_BUILD=TRUE MAMBA_SKIP_CUDA_BUILD=TRUE pip install"
    " --no-build-isolation --no-deps mamba-ssm`"
)

_INSTALL_NUMBA = install_line("cpu")

_MODULES = {
    "numba": "spscanner_rag.mamba2.kernels.numba.kernels",
    "mamba-ssm": "spscanner_rag.mamba2.kernels.triton.kernels",
}
"""Each module has a function ``load_kernels``, which raises ``ImportError`` if
something is missing."""


class BackendChoice(NamedTuple):
    """The kernels of a backend, with the reason they were taken."""

    kernels: Kernels
    reason: str


def choose_backend(backend: str, device: torch.device) -> BackendChoice:
    """Load a backend's kernels.

    "auto" is mamba-ssm on NVIDIA and numba on a CPU, if installed, else torch.

    Raises ``ValueError`` for an unknown backend or a device that its kernels do not run
    on, and ``ImportError`` if a backend was asked for by name and cannot be loaded.
    """
    check_backend(backend)
    if backend == "numpy":
        raise ValueError(
            "backend is 'numpy', which computes without torch and only answers"
            " questions; expected 'auto', 'torch', 'numba' or 'mamba-ssm' here"
        )
    if backend == "auto":
        try:
            if device.type == "cpu":
                return BackendChoice(load_kernels("numba"), "numba is installed")
            if device.type == "cuda" and torch.version.cuda is not None:
                return BackendChoice(
                    load_kernels("mamba-ssm"),
                    "the device is CUDA and mamba-ssm is installed",
                )
        except ImportError as error:
            return BackendChoice(TORCH_KERNELS, str(error))
        return BackendChoice(
            TORCH_KERNELS, "the other kernels are for NVIDIA GPUs and CPUs"
        )
    if backend == "numba" and device.type != "cpu":
        raise ValueError(
            "backend is 'numba', which runs on CPUs only; got the device"
            f" {str(device)!r}: use backend='auto'"
        )
    if (
        backend == "mamba-ssm"
        and device.type != "cuda"
        and not (device.type == "cpu" and interpreting())
    ):
        raise ValueError(
            "backend is 'mamba-ssm', which runs on CUDA devices only; got the device"
            f" {str(device)!r}: use backend='torch'; on a machine with an NVIDIA GPU,"
            f" {INSTALL_TRITON}"
        )
    return BackendChoice(
        TORCH_KERNELS if backend == "torch" else load_kernels(backend), "as asked for"
    )


def load_kernels(backend: str) -> Kernels:
    """The kernels of a backend other than torch.

    An ``ImportError`` says what to install.
    """
    if backend == "numba" and importlib.util.find_spec("numba") is None:
        raise ImportError(f"numba is not installed; {_INSTALL_NUMBA}")
    try:
        kernels: Kernels = import_module(_MODULES[backend]).load_kernels()
    except Exception as error:
        # for example, numba refuses to load with a numpy that it does not know
        if backend == "numba":
            raise ImportError(
                f"numba cannot be loaded ({error}); {_INSTALL_NUMBA}"
            ) from error
        raise
    return kernels


def interpreting() -> bool:
    """Return whether Triton interprets kernels on the CPU: TRITON_INTERPRET=1."""
    if importlib.util.find_spec("triton") is None:
        return False
    import triton

    return hasattr(triton, "knobs") and bool(triton.knobs.runtime.interpret)
