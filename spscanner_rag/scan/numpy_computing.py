"""Models that compute in numpy, on the CPU in float32."""

import re
from typing import Final

from spscanner_rag.checkpoint.numpy_load import load_numpy_checkpoint
from spscanner_rag.scan.computing import Computing
from spscanner_rag.system.torch_absence import needs_torch, torch_is_installed

_DEVICES: Final = re.compile(r"auto|(cpu|cuda|mps)(:\d+)?")
_DTYPES: Final = ("auto", "float32", "bfloat16")


def numpy_computing(backend: str, device: object, dtype: object) -> Computing:
    """Check that numpy computes what `Scanner.from_pretrained` was asked for.

    Raises
    ------
    ValueError
        For an unknown device or dtype, or another than numpy's where it was asked for
        by name and torch is installed.
    ImportError
        For another than numpy's where torch is not installed.
    """
    check_numpy_names(backend, device, dtype)
    return Computing(
        load_numpy_checkpoint,
        "numpy computes on CPUs",
        "numpy computes in float32",
        "as asked for" if backend == "numpy" else "torch is not installed",
    )


def check_numpy_names(backend: str, device: object, dtype: object) -> None:
    """Raise the errors of `numpy_computing`."""
    dtype_name = str(dtype).removeprefix("torch.")
    if not _DEVICES.fullmatch(str(device)):
        raise ValueError(f"device is {device!r}; expected 'auto' or 'cpu'")
    if dtype_name not in _DTYPES:
        raise ValueError(f"dtype is {dtype!r}; expected 'auto' or 'float32'")
    if backend not in ("auto", "numpy"):
        raise needs_torch(f"the backend {backend!r}")
    if str(device) not in ("auto", "cpu"):
        raise _refused("device", str(device))
    if dtype_name == "bfloat16":
        raise _refused("dtype", dtype_name)


def _refused(option: str, value: str) -> Exception:
    if not torch_is_installed():
        return needs_torch(f"the {option} {value!r}")
    return ValueError(
        f"backend is 'numpy', which computes on CPUs in float32; got the {option}"
        f" {value!r}: use backend='auto'"
    )
