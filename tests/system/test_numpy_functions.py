"""Functions of neural networks in numpy are those of torch."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from spscanner_rag.system.numpy_functions import (
    gelu_in_place,
    silu_in_place,
    softmax_in_place,
    softplus,
)

VALUES = np.linspace(-120, 120, 240_000, dtype=np.float32).reshape(3, -1)


def test_gelu_is_that_of_the_error_function() -> None:
    values = np.linspace(-8, 8, 100_001, dtype=np.float32)
    expected = [value * (1 + math.erf(value / 2**0.5)) / 2 for value in values.tolist()]
    gelu_in_place(values)
    assert np.abs(values - np.array(expected)).max() < 2e-6


def test_gelu_refuses_what_it_cannot_change_in_place() -> None:
    with pytest.raises(ValueError, match="values are not contiguous"):
        gelu_in_place(np.zeros((4, 4), np.float32)[:, :2])


def test_silu_softplus_and_softmax_are_those_of_torch() -> None:
    tensor = torch.from_numpy(VALUES)
    silu = VALUES.copy()
    silu_in_place(silu)
    assert np.allclose(silu, F.silu(tensor), atol=1e-5)
    assert np.allclose(softplus(VALUES), F.softplus(tensor), atol=1e-5)
    softmax = VALUES / 10
    softmax_in_place(softmax)
    assert np.allclose(softmax, F.softmax(tensor / 10, dim=-1), atol=1e-6)
