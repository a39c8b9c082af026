"""What the training loop asks of a stage: examples by number, and their loss."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.mamba2.ssd import CHUNK_TOKENS


class Batch(Protocol):
    """The sequences of one optimizer step."""

    @property
    def lengths(self) -> Sequence[int]:
        """Tokens of each sequence."""
        ...

    def loss(self, model: ScannerModel, group: Sequence[int]) -> Tensor:
        """The share of the step's loss that the sequences of these numbers have; the shares add up to it."""
        ...


class Objective(Protocol):
    """What a model is trained for."""

    @property
    def extra(self) -> nn.Module:
        """What is trained beside the model and not kept with it."""
        ...

    def batch(self, step: int, length: int) -> Batch:
        """The sequences of a step, each about ``length`` tokens; the same in every run. Steps count from 0."""
        ...


def hidden_states(
    model: ScannerModel,
    ids: Sequence[NDArray[np.integer[Any]]],
    match_classes: Sequence[NDArray[np.integer[Any]]] | None,
    dtype: str,
) -> Tensor:
    """Hidden states of several sequences, read together: (sequences, tokens, d_model).

    Parameters
    ----------
    model : ScannerModel
    ids : sequence of (tokens,) arrays
        Shorter ones are padded at their ends, where nothing that counts is read any more.
    match_classes : sequence of (tokens,) arrays, optional
        Exactly when the model has a match embedding.
    dtype : "bfloat16" or "float32"
        Arithmetic of matrix products.
    """
    longest = max(len(row) for row in ids)
    width = -(-longest // CHUNK_TOKENS) * CHUNK_TOKENS  # whole chunks: no copies for padding
    rows = _stacked(ids, width, model.device)
    classes = None if match_classes is None else _stacked(match_classes, width, model.device)
    with torch.autocast(model.device.type, torch.bfloat16, enabled=dtype == "bfloat16"):
        hidden, _ = model(rows, None, classes)
    return hidden  # type: ignore[no-any-return]


def _stacked(rows: Sequence[NDArray[np.integer[Any]]], width: int, device: torch.device) -> Tensor:
    """Rows of ids as one tensor with zeros after their ends: (rows, width)."""
    stacked = np.zeros((len(rows), width), np.int64)
    for target, row in zip(stacked, rows, strict=True):
        target[: len(row)] = row
    return torch.from_numpy(stacked).to(device)
