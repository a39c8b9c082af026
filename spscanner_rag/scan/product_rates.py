"""How fast this machine's CPU multiplies matrices in each dtype."""

import time
from functools import cache

import torch

_TOKENS, _INPUTS, _OUTPUTS = 1024, 256, 1160
"""The bundled checkpoint's first projection of some sentences."""

_REPEATS = 3


@cache
def product_rates(*dtypes: torch.dtype) -> tuple[float, ...]:
    """GFLOP per second of a matrix product in each dtype, measured once in a process, in some 20 ms.

    A processor's flags say what it multiplies natively, not whether that is faster: on some with AVX-512 BF16 but
    without AMX, a product takes twice as long in bfloat16 as in float32. The dtypes take turns and the fastest of
    `_REPEATS` counts, so that other programs disturb it little.
    """
    operands = [
        (torch.ones(_TOKENS, _INPUTS, dtype=dtype), torch.ones(_INPUTS, _OUTPUTS, dtype=dtype))
        for dtype in dtypes
    ]
    seconds = [float("inf")] * len(dtypes)
    with torch.inference_mode():
        for _ in range(1 + _REPEATS):  # the first prepares memory and threads
            for number, (inputs, weights) in enumerate(operands):
                start = time.perf_counter()
                inputs @ weights
                seconds[number] = min(seconds[number], time.perf_counter() - start)
    return tuple(2e-9 * _TOKENS * _INPUTS * _OUTPUTS / taken for taken in seconds)
