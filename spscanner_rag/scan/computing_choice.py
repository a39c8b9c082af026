"""Choose what computes: torch where it is installed, else numpy.

Modules that need torch are imported only where it is used.
"""

from typing import TYPE_CHECKING, Literal

from spscanner_rag.mamba2.backend_names import check_backend
from spscanner_rag.scan.computing import Computing
from spscanner_rag.system.torch_absence import torch_is_installed

if TYPE_CHECKING:
    import torch


def choose_computing(
    backend: str, device: "str | torch.device", dtype: "str | torch.dtype"
) -> Computing:
    """Choose what computes a model, from options of `Scanner.from_pretrained`.

    Raises
    ------
    ValueError
        For an unknown name, or a device that this machine lacks.
    ImportError
        For what is not installed.
    """
    check_backend(backend)
    if computes_in_numpy(backend):
        from spscanner_rag.scan.numpy_computing import numpy_computing

        return numpy_computing(backend, device, dtype)
    from spscanner_rag.scan.torch_computing import torch_computing

    return torch_computing(backend, device, dtype)


def check_names(
    backend: str, device: "str | torch.device", dtype: "str | torch.dtype"
) -> None:
    """Raise the errors of `choose_computing` that need no device, for forks' sake."""
    check_backend(backend)
    if computes_in_numpy(backend):
        from spscanner_rag.scan.numpy_computing import check_numpy_names

        check_numpy_names(backend, device, dtype)
        return
    from spscanner_rag.scan import devices

    devices.check_names(device, dtype)


def computes_in_numpy(backend: str = "auto") -> bool:
    """Return whether numpy computes, because torch is missing or is not to be used."""
    return backend == "numpy" or not torch_is_installed()


def computes_on_cpu(device: "str | torch.device", backend: str = "auto") -> bool:
    """Return whether a scanner with these options computes on a CPU."""
    if computes_in_numpy(backend):
        return True
    from spscanner_rag.scan.devices import choose

    return choose(device, "float32").device.type == "cpu"


def quickest_to_load(device: str) -> Literal["auto", "torch"]:
    """Return the backend that is ready first: on a CPU, numba's kernels are not."""
    if not computes_in_numpy() and computes_on_cpu(device):
        return "torch"
    return "auto"
