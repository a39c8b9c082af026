"""Matrices in 4 bits are restored as they were stored."""

import numpy as np
import pytest
import torch

from spscanner_rag.encoder.four_bit import FourBitRows, restored_blocks
from tests.encoder.four_bits import stored_in_four_bits


def test_rows_are_restored_to_the_nearest_of_sixteen_numbers() -> None:
    matrix = np.random.default_rng(0).normal(size=(5, 64)).astype(np.float32)
    stored = torch.from_numpy(stored_in_four_bits(matrix))
    restored = restored_blocks(stored)
    step = np.abs(matrix.reshape(5, 2, 32)).max(-1) / 7
    error = np.abs(restored.numpy() - matrix).reshape(5, 2, 32).max(-1)
    assert (error <= 0.51 * step).all()
    rows = FourBitRows(stored)
    assert len(rows) == 5
    numbers = torch.tensor([3, 3, 0])
    assert torch.equal(rows[numbers], restored[numbers])
    half = FourBitRows(stored, torch.bfloat16)
    assert half[numbers].dtype == torch.bfloat16


def test_another_layout_is_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \[2, 1, 17\]; expected bytes of"):
        FourBitRows(torch.zeros(2, 1, 17, dtype=torch.uint8))
