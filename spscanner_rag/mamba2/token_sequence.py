"""What is read: token ids with the positions whose logits are wanted, and how arrays get to the model's device."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class TokenSequence(NamedTuple):
    """One sequence to read and the positions whose logits are wanted."""

    input_ids: NDArray[np.int32]  # (tokens,)
    positions: NDArray[np.int64]  # (units,), not decreasing
    match_classes: NDArray[np.uint8] | None = None  # (tokens,)
    prior: NDArray[np.float32] | None = None  # (units, scores): its own, then its surroundings'


def on_device(values: NDArray[np.generic], device: torch.device) -> Tensor:
    """A copy on the device. One to a GPU is not waited for: torch keeps the pinned memory until it is done."""
    tensor = torch.from_numpy(np.array(values))
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)
