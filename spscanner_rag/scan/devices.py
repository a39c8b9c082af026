"""Devices: which one a model runs on, with which dtype, how many tokens at once; what this machine's CPU is."""

import platform
from pathlib import Path
from typing import NamedTuple

import torch

from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.scan.product_rates import product_rates

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
WITH_INT8 = DTYPES | {"int8": torch.int8}

SEGMENT_TOKENS = {"cpu": 512, "mps": 4096, "cuda": 32768}
"""Tokens per forward pass by kind of device: enough to keep it busy, few enough for its memory. On a CPU this is
the minimum; narrow models read more (`default_segment_tokens`)."""

WORTH_ROUNDING = 1.25
"""On a CPU, bfloat16 must be this many times as fast as float32. It rounds more; and where both are about as fast,
the choice, and with it the scores, would change from one process to the next."""

_CPU_PROJECTION = 2**22
"""Elements of a layer's largest activation on a CPU (16 MiB). With fewer, the overhead of the many small
operations between the matrix products grows; with more, they wait for memory. Measured for d_model 256 and 768."""


class Choice(NamedTuple):
    """A device and a dtype, each with the reason it was taken."""

    device: torch.device
    dtype: torch.dtype
    device_reason: str
    dtype_reason: str


def choose(
    device: str | torch.device = "auto", dtype: str | torch.dtype = "auto", *, int8: bool = False
) -> Choice:
    """Resolve "auto", or check that the given device and dtype are known and available (else ``ValueError``).

    "auto" takes CUDA (which ROCm also answers to), then MPS, then the CPU; and bfloat16 where the hardware
    multiplies it natively and, on a CPU, faster than float32 when measured (`product_rates`), else float32.
    ``int8`` also allows "int8", which only scanners on a CPU support.
    """
    found, device_reason = _device(device)
    asked = _named_dtype(dtype, int8)
    if asked is None:
        asked, dtype_reason = _native_dtype(found)
        return Choice(found, asked, device_reason, dtype_reason)
    return Choice(found, asked, device_reason, "as asked for")


def check_names(device: str | torch.device, dtype: str | torch.dtype, *, int8: bool = False) -> None:
    """Raise ``ValueError`` for a device or dtype that no machine has.

    Nothing is asked of a device, so that a process may still be forked. Devices that this machine lacks, or this
    torch was built without, are found by `choose`.
    """
    _named_device(device)
    _named_dtype(dtype, int8)


def _named_dtype(dtype: str | torch.dtype, int8: bool) -> torch.dtype | None:
    """The dtype of a name; None for "auto"."""
    if isinstance(dtype, str) and dtype == "auto":
        return None
    known = WITH_INT8 if int8 else DTYPES
    asked = known.get(dtype) if isinstance(dtype, str) else dtype
    if not isinstance(asked, torch.dtype) or asked not in known.values():
        *names, last = map(repr, ("auto", *known))
        raise ValueError(f"dtype is {dtype!r}; expected {', '.join(names)} or {last}")
    return asked


def _named_device(device: str | torch.device) -> torch.device | None:
    """The device of a name, whether or not this machine has it; None for "auto"."""
    if isinstance(device, str) and device == "auto":
        return None
    expected = "expected 'auto', 'cpu', 'cuda', 'cuda:N' or 'mps'"
    if not isinstance(device, str | torch.device):
        raise ValueError(f"device is {device!r}; {expected}")
    try:
        asked = torch.device(device)
    except RuntimeError:
        raise ValueError(f"device is {device!r}; {expected}") from None
    if asked.type not in ("cpu", "cuda", "mps"):
        raise ValueError(f"device is {str(device)!r}; {expected}")
    return asked


def _device(device: str | torch.device) -> tuple[torch.device, str]:
    asked = _named_device(device)
    if asked is None:
        if torch.cuda.is_available():
            return torch.device("cuda"), "CUDA is available"
        if torch.backends.mps.is_available():
            return torch.device("mps"), "no CUDA; MPS is available"
        return torch.device("cpu"), "neither CUDA nor MPS is available"
    if asked.type == "mps" and not torch.backends.mps.is_available():
        raise ValueError("device is 'mps', which this machine does not have; use 'cpu' or 'auto'")
    if asked.type == "cuda" and not torch.cuda.is_available():
        built = "this torch was built without it" if torch.version.cuda is None else "torch sees no GPU"
        raise ValueError(
            f"device is {str(asked)!r}, but CUDA is not available ({built}); use 'cpu' or 'auto'"
        )
    if asked.type == "cuda" and (asked.index or 0) >= torch.cuda.device_count():
        raise ValueError(f"device is {str(asked)!r}, but there are {torch.cuda.device_count()} CUDA devices")
    return asked, "as asked for"


def _native_dtype(device: torch.device) -> tuple[torch.dtype, str]:
    if device.type == "mps":
        return torch.float32, "always used on MPS"
    if device.type == "cuda":
        if torch.cuda.is_bf16_supported(including_emulation=False):
            return torch.bfloat16, "the GPU multiplies it natively"
        return torch.float32, "the GPU has no native bfloat16"
    # private functions of torch; without them float32 is a safe choice
    probes = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    if not any(getattr(torch.cpu, probe, bool)() for probe in probes):
        return torch.float32, "the CPU has no native bfloat16"
    bfloat16, float32 = product_rates(torch.bfloat16, torch.float32)
    rates = f"products run at {bfloat16:.0f} GFLOP/s in bfloat16 and at {float32:.0f} in float32"
    return (torch.bfloat16 if bfloat16 > WORTH_ROUNDING * float32 else torch.float32), rates


def default_segment_tokens(device_type: str, config: Mamba2Config) -> int:
    """Tokens per forward pass for a kind of device; on a CPU a power of 2, fewer for wider models."""
    if device_type != "cpu":
        return SEGMENT_TOKENS.get(device_type, SEGMENT_TOKENS["cpu"])
    fitting = _CPU_PROJECTION // config.d_in_proj
    return max(SEGMENT_TOKENS["cpu"], min(4096, 1 << max(fitting.bit_length() - 1, 0)))


def processor_name() -> str:
    """The name of the processor, for reports."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
