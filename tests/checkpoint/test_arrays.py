"""Tensors of a file are read without torch."""

import numpy as np
import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import save

from spscanner_rag.checkpoint.arrays import load_arrays


@pytest.mark.parametrize(
    "dtype",
    [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int8],
)
def test_values_are_those_of_torch(dtype: torch.dtype) -> None:
    tensor = (torch.randn(3, 4) * 10).to(dtype)
    array = load_arrays(save({"weight": tensor}))["weight"]
    assert np.array_equal(array.astype(np.float64), tensor.double().numpy())
    assert torch.from_numpy(array).shape == (3, 4)  # without a warning: it is writable


def test_unknown_kinds_and_damaged_files_are_refused() -> None:
    with pytest.raises(ValueError, match="tensor weight is F8_E4M3; expected bfloat16"):
        load_arrays(save({"weight": torch.zeros(2).to(torch.float8_e4m3fn)}))
    with pytest.raises(SafetensorError):
        load_arrays(b"\x01")
