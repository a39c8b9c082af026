"""mamba-ssm's operators as a Mamba-2 layer, for `backend="mamba-ssm"`.

Rounding: with bfloat16 weights, products of bfloat16 numbers are summed in float32;
decays, sums of decays and the state are float32. With float32 weights, factors are
float32, where Triton's default would be TF32 (10 bits).

``import mamba_ssm`` runs ``mamba_ssm/__init__.py``, which needs the CUDA extension
``selective_scan_cuda`` of Mamba-1 (in release 2.3.2.post1 even if it is not used) and
the packages of all its other models. The operators of Mamba-2 are Triton and need none
of these. So they are imported under an empty package and then removed from
`sys.modules`: other code in the process that imports ``mamba_ssm`` gets the real
package, and does not share kernels with this one.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from spscanner_rag.mamba2.backends import INSTALL_TRITON, interpreting
from spscanner_rag.mamba2.kernels.torch import Kernels, ScanOperands, tail_after

if TYPE_CHECKING:
    from spscanner_rag.mamba2.config import Mamba2Config
    from spscanner_rag.mamba2.kernels.torch import GatedRMSNorm

OFFSETS = 2**31
"""The kernels count elements in 32 bits: past this many they return wrong numbers
without an error (state-spaces/mamba issue 1015)."""

# the range of tokens per chunk that the kernels support
SMALLEST_CHUNK = 16
LARGEST_CHUNK = 256

_PACKAGE = "mamba_ssm"
_SCAN = f"{_PACKAGE}.ops.triton.ssd_combined"
_NORM = f"{_PACKAGE}.ops.triton.layernorm_gated"

_importing = threading.Lock()

# Held during a launch, because autotuned kernels store their arguments on themselves
# and Triton's settings are global. It does not serialize the GPU's own work.
_launching = threading.Lock()


class MambaKernels(Kernels):
    """mamba-ssm's scan and gated norm, and our own convolution."""

    name = "mamba-ssm"
    packs = True

    def __init__(self, operators: Operators) -> None:
        self._operators = operators

    def __reduce__(self) -> tuple[Callable[[], Kernels], tuple[()]]:
        # loaded kernels cannot be copied to another process, which loads its own
        # instead
        return load_kernels, ()

    def most_tokens(self, config: Mamba2Config) -> int:
        """Maximum number of tokens whose offsets in the largest tensor fit 32 bits."""
        chunk = _chunk_tokens(config)
        per_chunk = max(
            chunk
            * config.d_in_proj,  # the projection, whose parts the kernels read in place
            config.ngroups * chunk * chunk,  # products of C and B
            config.d_inner * config.d_state,  # states at the chunks' ends
        )
        return (OFFSETS - 1) // per_chunk * chunk

    def convolve(
        self,
        conv1d: nn.Conv1d,
        xBC: Tensor,
        tail: Tensor,
        sequence_index: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Use our own kernel."""
        from spscanner_rag.mamba2.kernels.triton.convolution import convolve

        out = convolve(xBC, tail, conv1d.weight, conv1d.bias, sequence_index)
        return out, tail_after(xBC, tail, sequence_index)

    def scan(
        self,
        operands: ScanOperands,
        state: Tensor,
        config: Mamba2Config,
        sequence_index: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Use ``mamba_chunk_scan_combined``.

        Raises ``ValueError`` for more than `most_tokens`.
        """
        x, dt, dt_bias, A, B, C, D = operands
        n_most = self.most_tokens(config)
        if x.shape[0] * x.shape[1] > n_most:
            raise ValueError(
                f"{x.shape[0] * x.shape[1]:,} tokens in one pass; expected at most"
                f" {n_most:,}, beyond which mamba-ssm's kernels give wrong numbers: use"
                " a smaller segment_tokens"
            )
        with _launching, _exact_products(x.dtype):
            y, final_state = self._operators.mamba_chunk_scan_combined(
                x,
                dt,
                A,
                B,
                C,
                _chunk_tokens(config),
                D=D,
                dt_bias=dt_bias.float(),
                initial_states=state,
                seq_idx=sequence_index,
                dt_softplus=True,
                dt_limit=config.dt_limit,
                return_final_states=True,
            )
        return y, final_state

    def gated_norm(self, norm: GatedRMSNorm, y: Tensor, z: Tensor) -> Tensor:
        """Use ``rmsnorm_fn``."""
        if not y.numel():
            return y
        normed: Tensor = self._operators.rmsnorm_fn(
            y,
            norm.weight,
            None,
            z,
            eps=norm.epsilon,
            group_size=y.shape[-1] // norm.groups,
            norm_before_gate=norm.norm_before_gate,
        )
        return normed


def _chunk_tokens(config: Mamba2Config) -> int:
    """The checkpoint's chunk size, rounded down to a supported power of 2."""
    power: int = 2 ** int(math.log2(config.chunk_size))
    return min(max(power, SMALLEST_CHUNK), LARGEST_CHUNK)


@contextmanager
def _exact_products(dtype: torch.dtype) -> Iterator[None]:
    """Multiply float32 numbers in float32 within this context, not in TF32.

    It counts for kernels that are compiled there.
    """
    if dtype != torch.float32:
        yield
        return
    import triton

    with triton.knobs.language.scope():
        triton.knobs.language.fp32_default = "ieee"
        yield


class Operators(NamedTuple):
    """Functions of mamba-ssm, by its names."""

    mamba_chunk_scan_combined: Callable[..., Any]
    rmsnorm_fn: Callable[..., Any]


def load_kernels() -> Kernels:
    """Load the kernels, or raise an ``ImportError`` that says what to install."""
    return MambaKernels(load_operators())


@cache
def load_operators() -> Operators:
    """Import the operators, once per process."""
    modules = import_modules([_SCAN, _NORM])
    return Operators(
        modules[_SCAN].mamba_chunk_scan_combined, modules[_NORM].rmsnorm_fn
    )


def import_modules(names: Sequence[str]) -> dict[str, ModuleType]:
    """Import modules of mamba-ssm without its package, ready to run here.

    Return all of them that this loads.
    """
    _require_versions()
    with _importing:
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
    for package, module in (
        ("mamba-ssm", _PACKAGE),
        ("triton", "triton"),
        ("einops", "einops"),
    ):
        if module not in sys.modules and importlib.util.find_spec(module) is None:
            raise ImportError(f"{package} is not installed; {INSTALL_TRITON}")
    try:
        installed = version("mamba-ssm")
    except PackageNotFoundError:
        installed = "unknown"
    numbers = tuple(int(part) for part in installed.split(".")[:2] if part.isdecimal())
    if numbers < (2, 3):
        raise ImportError(
            f"mamba-ssm is {installed}; expected 2.3 or later; {INSTALL_TRITON}"
        )
    import triton

    if not hasattr(triton, "knobs"):
        raise ImportError(
            f"triton is {triton.__version__}; expected 3.4 or later; {INSTALL_TRITON}"
        )


def _import_past_the_package(names: Sequence[str]) -> dict[str, ModuleType]:
    """Import modules of mamba-ssm without its ``__init__.py``.

    Return all its modules that this loads.
    """
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
    names = [
        name
        for name in sys.modules
        if name == _PACKAGE or name.startswith(f"{_PACKAGE}.")
    ]
    return {name: sys.modules.pop(name) for name in names}


def _fit_to_interpreter(module: ModuleType) -> None:
    """Adapt a module to the interpreter.

    It sets no current GPU, and times no configurations.
    """
    import triton

    if hasattr(module, "torch"):
        copy = ModuleType("torch")
        vars(copy).update(
            vars(torch), cuda=SimpleNamespace(device=lambda index: nullcontext())
        )
        vars(module)["torch"] = copy
    for value in vars(module).values():
        if isinstance(value, triton.runtime.Autotuner):
            # fastest in the interpreter: the largest blocks of vectors, the smallest of
            # matrices
            quickest = max if len(value.configs[0].kwargs) == 1 else min
            value.configs = [quickest(value.configs, key=_block_size)]


def _block_size(config: Any) -> int:  # noqa: ANN401 - triton.Config
    return math.prod(
        value for name, value in config.kwargs.items() if name.startswith("BLOCK")
    )
