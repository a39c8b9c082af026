"""How many tokens a model reads at once."""

from spscanner_rag.mamba2.config import Mamba2Config

SEGMENT_TOKENS = {"cpu": 512, "mps": 4096, "cuda": 32768}
"""Tokens per forward pass by kind of device: enough to keep it busy, few enough for
its memory. On a CPU this is the minimum; narrow models read more
(`default_segment_tokens`)."""

_CPU_PROJECTION = 2**22
"""Elements of a layer's largest activation on a CPU (16 MiB). With fewer, the
overhead of the many small operations between the matrix products grows; with more,
they wait for memory. Measured for d_model 256 and 768."""


def default_segment_tokens(device_type: str, config: Mamba2Config) -> int:
    """Tokens per forward pass for a kind of device.

    On a CPU a power of 2, fewer for wider models.
    """
    if device_type != "cpu":
        return SEGMENT_TOKENS.get(device_type, SEGMENT_TOKENS["cpu"])
    fitting = _CPU_PROJECTION // config.d_in_proj
    return max(SEGMENT_TOKENS["cpu"], min(4096, 1 << max(fitting.bit_length() - 1, 0)))
