"""Choose the device and dtype of a model in torch."""

import os
import time
from contextlib import suppress
from functools import cache
from typing import NamedTuple

import torch

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}

WORTH_ROUNDING = 1.25
"""On a CPU, bfloat16 must be this many times as fast as float32. It rounds more; and
if both were about as fast, the choice, and with it the scores, would change from one
process to the next."""

# the bundled checkpoint's first projection of some sentences
_TOKENS = 1024
_INPUTS = 256
_OUTPUTS = 1160
_REPEATS = 3


class Choice(NamedTuple):
    """A device and a dtype, each with the reason it was taken."""

    device: torch.device
    dtype: torch.dtype
    device_reason: str
    dtype_reason: str


def choose(
    device: str | torch.device = "auto", dtype: str | torch.dtype = "auto"
) -> Choice:
    """Resolve "auto", or check that a device and a dtype are known and available.

    ``ValueError`` if they are not.

    Examples
    --------
    >>> from spscanner_rag.scan.devices import choose
    >>> choose("cpu", "float32").dtype_reason
    'as asked for'
    """
    chosen_device, device_reason = _device(device)
    chosen_dtype = _named_dtype(dtype)
    dtype_reason = "as asked for"
    if chosen_dtype is None:
        chosen_dtype, dtype_reason = _native_dtype(chosen_device)
    return Choice(chosen_device, chosen_dtype, device_reason, dtype_reason)


def check_names(device: str | torch.device, dtype: str | torch.dtype) -> None:
    """Raise ``ValueError`` for a device or dtype that no machine has.

    Touch no device, for the sake of forks.
    """
    _named_device(device)
    _named_dtype(dtype)


def _named_dtype(dtype: str | torch.dtype) -> torch.dtype | None:
    """The dtype of a name.

    None for "auto".
    """
    if isinstance(dtype, str) and dtype == "auto":
        return None
    named = DTYPES.get(dtype) if isinstance(dtype, str) else dtype
    if not isinstance(named, torch.dtype) or named not in DTYPES.values():
        raise ValueError(
            f"dtype is {dtype!r}; expected 'auto', 'float32' or 'bfloat16'"
        )
    return named


def _named_device(device: str | torch.device) -> torch.device | None:
    """The device of a name, whether or not this machine has it.

    None for "auto".
    """
    if isinstance(device, str) and device == "auto":
        return None
    named = None
    if isinstance(device, str | torch.device):
        with suppress(RuntimeError):
            named = torch.device(device)
    if named is None or named.type not in ("cpu", "cuda", "mps"):
        raise ValueError(
            f"device is {device!r}; expected 'auto', 'cpu', 'cuda', 'cuda:N' or 'mps'"
        )
    return named


def _device(device: str | torch.device) -> tuple[torch.device, str]:
    named = _named_device(device)
    if named is None:
        if torch.cuda.is_available():
            return torch.device("cuda"), "CUDA is available"
        if torch.backends.mps.is_available():
            return torch.device("mps"), "no CUDA; MPS is available"
        return torch.device("cpu"), "neither CUDA nor MPS is available"
    if named.type == "mps" and not torch.backends.mps.is_available():
        raise ValueError(
            "device is 'mps', which this machine does not have; use 'cpu' or 'auto'"
        )
    if named.type == "cuda" and not torch.cuda.is_available():
        cause = "torch sees no GPU"
        if torch.version.cuda is None:
            cause = "this torch was built without it"
        raise ValueError(
            f"device is {str(named)!r}, but CUDA is not available ({cause}); use 'cpu'"
            " or 'auto'"
        )
    if named.type == "cuda" and (named.index or 0) >= torch.cuda.device_count():
        raise ValueError(
            f"device is {str(named)!r}, but there are {torch.cuda.device_count()} CUDA"
            " devices"
        )
    return named, "as asked for"


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
    rates = (
        f"products run at {bfloat16:.0f} GFLOP/s in bfloat16 and at {float32:.0f} in"
        " float32"
    )
    if bfloat16 > WORTH_ROUNDING * float32:
        return torch.bfloat16, rates
    return torch.float32, rates


@cache
def product_rates(*dtypes: torch.dtype) -> tuple[float, ...]:
    """GFLOP per second of a matrix product in each dtype.

    They are measured once per process, in some 20 ms. A processor's flags do not show
    whether its native product is faster: without AMX, bfloat16 may take twice as long.
    """
    operands = []
    for dtype in dtypes:
        inputs = torch.ones(_TOKENS, _INPUTS, dtype=dtype)
        weights = torch.ones(_INPUTS, _OUTPUTS, dtype=dtype)
        operands.append((inputs, weights))
    # Time of other programs does not count; but Windows counts a thread's own time in
    # steps of 16 ms.
    clock = time.perf_counter if os.name == "nt" else time.thread_time
    seconds = [float("inf")] * len(dtypes)
    with torch.inference_mode():
        for _ in range(1 + _REPEATS):  # the first prepares memory and threads
            for number, (inputs, weights) in enumerate(operands):
                start = clock()
                inputs @ weights
                seconds[number] = min(seconds[number], clock() - start)
    operations = 2e-9 * _TOKENS * _INPUTS * _OUTPUTS
    return tuple(operations / seconds_of_dtype for seconds_of_dtype in seconds)
