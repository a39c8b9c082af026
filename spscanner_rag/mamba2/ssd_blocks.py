"""Constants of the state-space operator in blocks, whatever computes it."""

from typing import Final

CHUNK_TOKENS: Final = 64
"""Tokens per block. The cost of a block grows with their square, while the number of
states passed between blocks falls. 64 was the fastest on a CPU for 24 heads with
headdim 64 and d_state 128."""

SMALLEST_LOG_DECAY: Final = -40.0
"""Smaller decays are set to exp(-40) = 4e-18, which is negligible in a float32 sum
but keeps products from being denormal numbers, with which a CPU computes many times
more slowly."""
