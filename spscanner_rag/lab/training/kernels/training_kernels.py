"""Which kernels compute the layers while a model is trained, and why."""

import torch

from spscanner_rag.mamba2.backends import BackendChoice, choose_backend
from spscanner_rag.mamba2.kernels.torch import TORCH_KERNELS


def choose_training_kernels(device: torch.device, compiled: bool) -> BackendChoice:
    """Kernels with gradients: on a CPU those that numba compiles, where it is installed, else plain torch.

    ``compiled`` is whether torch.compile fuses the layers of plain torch.
    """
    if device.type != "cpu":
        return BackendChoice(TORCH_KERNELS, "the other kernels with gradients are for CPUs")
    if compiled:
        return BackendChoice(TORCH_KERNELS, "compile is true")
    choice = choose_backend("auto", device)
    if choice.kernels.name != "numba":
        return choice
    from spscanner_rag.lab.training.kernels.gradients import NumbaTrainingKernels  # needs numba

    return BackendChoice(NumbaTrainingKernels(), choice.reason)
