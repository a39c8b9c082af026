"""The Triton operators of mamba-ssm, loaded without the rest of that package.

``import mamba_ssm`` runs ``mamba_ssm/__init__.py``, which needs the CUDA extension ``selective_scan_cuda`` of
Mamba-1 (in release 2.3.2.post1 even if it is not used) and the packages of all its other models. The operators of
Mamba-2 are Triton and need none of these. So they are imported under an empty package and then removed from
`sys.modules`: other code in the process that imports ``mamba_ssm`` gets the real package, and does not share
kernels with this one.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import torch

from spscanner_rag.mamba2.backends import INSTALL_TRITON, interpreting

_PACKAGE = "mamba_ssm"
_SCAN, _NORM = f"{_PACKAGE}.ops.triton.ssd_combined", f"{_PACKAGE}.ops.triton.layernorm_gated"

_lock = threading.Lock()


class Operators(NamedTuple):
    """Functions of mamba-ssm, by its names."""

    mamba_chunk_scan_combined: Callable[..., Any]
    rmsnorm_fn: Callable[..., Any]


@cache
def load_operators() -> Operators:
    """Import the operators, once in a process; an ``ImportError`` says in one line what to install."""
    modules = import_modules([_SCAN, _NORM])
    return Operators(modules[_SCAN].mamba_chunk_scan_combined, modules[_NORM].rmsnorm_fn)


def import_modules(names: Sequence[str]) -> dict[str, ModuleType]:
    """Import modules of mamba-ssm, without its package, to run here; all of its modules that this loads."""
    _require_versions()
    with _lock:
        try:
            modules = _import_past_the_package(names)
        except ImportError as error:
            raise ImportError(
                f"mamba-ssm's modules cannot be imported ({error}); {INSTALL_TRITON}"
            ) from error
    if interpreting():
        for module in modules.values():
            _fit_to_interpreter(module)
    return modules


def _require_versions() -> None:
    for package, module in (("mamba-ssm", _PACKAGE), ("triton", "triton"), ("einops", "einops")):
        if module not in sys.modules and importlib.util.find_spec(module) is None:
            raise ImportError(f"{package} is not installed; {INSTALL_TRITON}")
    try:
        found = version("mamba-ssm")
    except PackageNotFoundError:
        found = "unknown"
    numbers = tuple(int(part) for part in found.split(".")[:2] if part.isdecimal())
    if numbers < (2, 3):
        raise ImportError(f"mamba-ssm is {found}; expected 2.3 or later; {INSTALL_TRITON}")
    import triton

    if not hasattr(triton, "knobs"):
        raise ImportError(f"triton is {triton.__version__}; expected 3.4 or later; {INSTALL_TRITON}")


def _import_past_the_package(names: Sequence[str]) -> dict[str, ModuleType]:
    """Import modules of mamba-ssm without its ``__init__.py``; return all its modules that this loads."""
    before = _taken_out()
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.submodule_search_locations is None:
        sys.modules.update(before)
        raise ImportError(f"{_PACKAGE} is not a package")
    package = ModuleType(_PACKAGE)
    package.__path__ = list(spec.submodule_search_locations)
    package.__spec__ = spec
    sys.modules[_PACKAGE] = package
    try:
        for name in names:
            importlib.import_module(name)
    finally:
        ours = _taken_out()
        sys.modules.update(before)
    return ours


def _taken_out() -> dict[str, ModuleType]:
    """Remove mamba-ssm's modules from `sys.modules` and return them by name."""
    names = [name for name in sys.modules if name == _PACKAGE or name.startswith(f"{_PACKAGE}.")]
    return {name: sys.modules.pop(name) for name in names}


class _Instead:
    """An object with some attributes replaced."""

    def __init__(self, original: object, **replaced: object) -> None:
        self.__dict__.update(replaced)
        self._original = original

    def __getattr__(self, name: str) -> object:
        return getattr(self._original, name)


def _fit_to_interpreter(module: ModuleType) -> None:
    """Adapt a module to the interpreter: set no current GPU, and time no configurations."""
    import triton

    if hasattr(module, "torch"):
        cuda = SimpleNamespace(device=lambda index: nullcontext())
        vars(module)["torch"] = _Instead(torch, cuda=cuda)
    for value in vars(module).values():
        if isinstance(value, triton.runtime.Autotuner):
            value.configs = [_quickest_to_interpret(value.configs)]


def _quickest_to_interpret(configs: Sequence[Any]) -> object:
    """The fastest configuration in the interpreter: the largest blocks of vectors, the smallest of matrices."""

    def size(config: Any) -> int:  # noqa: ANN401 - triton.Config
        return math.prod(value for name, value in config.kwargs.items() if name.startswith("BLOCK"))

    return (max if len(configs[0].kwargs) == 1 else min)(configs, key=size)
