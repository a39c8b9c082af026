"""Matrices in 4 bits are restored in numpy as they are in torch."""

import numpy as np
import torch

from spscanner_rag.encoder.four_bit import FourBitRows
from spscanner_rag.encoder.four_bit_blocks import restored_array, restored_rows
from tests.encoder.four_bits import stored_in_four_bits


def test_rows_are_those_of_torch() -> None:
    matrix = np.random.default_rng(0).normal(size=(6, 64)).astype(np.float32)
    stored = stored_in_four_bits(matrix)
    rows = FourBitRows(torch.from_numpy(stored))
    numbers = np.array([5, 0, 5])
    expected = rows[torch.from_numpy(numbers)].numpy()
    assert np.array_equal(restored_rows(stored, numbers), expected)
    assert np.array_equal(restored_array(stored)[numbers], expected)
