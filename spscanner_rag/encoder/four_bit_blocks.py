"""Matrices in 4 bits, with a scale for every 32 numbers of a row.

The layout is that of llama.cpp's ``Q4_0``: a block of 18 bytes has a scale in float16
and then 16 bytes, whose low halves are the first 16 numbers and whose high halves are
the others, each plus 8.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

BLOCK: Final = 32
"""Numbers that share a scale."""

BLOCK_BYTES: Final = 18
"""Bytes of a block."""

SCALE_BYTES: Final = 2
"""Bytes of a block's scale, which come first."""

LARGEST_NUMBER: Final = 8
"""The size of the largest number, before it is multiplied by its scale."""

ZERO: Final = 8  # what the number 0 is stored as


def restored_array(blocks: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return the matrix of blocks, (rows, blocks, `BLOCK_BYTES`): (rows, columns)."""
    scales = np.ascontiguousarray(blocks[..., :SCALE_BYTES]).view("<f2")
    halves = blocks[..., SCALE_BYTES:]
    numbers = np.concatenate([halves & 15, halves >> 4], axis=-1).astype(np.float32)
    numbers -= ZERO
    numbers *= scales.astype(np.float32)
    return numbers.reshape(len(blocks), -1)


def restored_rows(
    blocks: NDArray[np.uint8], numbers: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Return the rows with these numbers, (rows,): (rows, columns).

    Parameters
    ----------
    blocks : array of uint8, (rows, blocks, `BLOCK_BYTES`)
        The stored blocks of a matrix.
    numbers : array (rows,)
        Which rows to restore.
    """
    return restored_array(blocks[numbers])
