"""What the training loop asks of a stage: examples by number, and their loss."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.training.passes import Pass


class Batch(Protocol):
    """The sequences of one optimizer step."""

    @property
    def lengths(self) -> Sequence[int]:
        """Tokens of each sequence."""
        ...

    def loss(self, model: ScannerModel, read: Pass) -> Tensor:
        """The share of the step's loss that the sequences of a pass have; the shares add up to it."""
        ...


class Objective(Protocol):
    """What a model is trained for."""

    @property
    def extra(self) -> nn.Module:
        """What is trained beside the model and not kept with it."""
        ...

    def draw(self, step: int, length: int) -> object:
        """The sequences of a step, each about ``length`` tokens; the same in every run. Steps count from 0.

        It is plain data, and may be called in another process.
        """
        ...

    def batch(self, drawn: Any) -> Batch:  # noqa: ANN401 - each objective knows what it drew
        """What was drawn, ready to be trained on."""
        ...


def hidden_states(
    model: ScannerModel,
    ids: Sequence[NDArray[np.integer[Any]]],
    match_classes: Sequence[NDArray[np.integer[Any]]] | None,
    dtype: str,
    read: Pass,
) -> Tensor:
    """Hidden states of several sequences, read together: (rows, width, d_model).

    Parameters
    ----------
    model : ScannerModel
    ids : sequence of (tokens,) arrays
        Of the pass's members.
    match_classes : sequence of (tokens,) arrays, optional
        Exactly when the model has a match embedding.
    dtype : "bfloat16" or "float32"
        Arithmetic of matrix products.
    read : Pass
    """
    rows = _stacked(ids, read, model.device)
    classes = None if match_classes is None else _stacked(match_classes, read, model.device)
    with read.stance(), torch.autocast(model.device.type, torch.bfloat16, enabled=dtype == "bfloat16"):
        hidden, _ = model(rows, None, classes)
    return hidden  # type: ignore[no-any-return]


def _stacked(rows: Sequence[NDArray[np.integer[Any]]], read: Pass, device: torch.device) -> Tensor:
    """Rows of ids as one tensor with zeros after their ends: (rows, width)."""
    stacked = np.zeros((read.rows, read.width), np.int64)
    for target, row in zip(stacked, rows, strict=False):  # rows that are left over stay empty
        target[: len(row)] = row
    return torch.from_numpy(stacked).to(device)
