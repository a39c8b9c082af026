"""Which sequences of a step go through the model together, in what shape, and their hidden states."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.mamba2.reader import group_by_length
from spscanner_rag.mamba2.ssd import CHUNK_TOKENS


@dataclass(frozen=True, slots=True)
class Pass:
    """Sequences that are read together; padding follows their ends or fills whole rows, and changes no state."""

    members: Sequence[int]  # the sequences' numbers in the step
    rows: int
    width: int
    compiled: bool = False  # whether layers were compiled for this shape


def passes(lengths: Sequence[int], length: int, most_tokens: int, compiled: bool) -> list[Pass]:
    """Divide the sequences of a step into passes.

    Parameters
    ----------
    lengths : sequence of int
        Tokens of each sequence.
    length : int
        Length of the step's sequences by the recipe; a sequence may be shorter or longer.
    most_tokens : int
        Tokens of a pass, padding included; a single sequence may have more.
    compiled : bool
        Whether all passes have one shape, since compiling for another takes half a minute or more. A sequence
        that is too long for it is a pass of its own, not compiled.
    """
    if not compiled:
        groups = group_by_length(lengths, most_tokens)
        return [Pass(group, len(group), _whole_chunks(max(lengths[i] for i in group))) for group in groups]
    width = _whole_chunks(length)
    fitting = [i for i, tokens in enumerate(lengths) if tokens <= width]
    rows = max(1, most_tokens // width)
    together = [fitting[start : start + rows] for start in range(0, len(fitting), rows)]
    longer = [i for i, tokens in enumerate(lengths) if tokens > width]
    return [Pass(group, min(rows, len(lengths)), width, compiled=True) for group in together] + [
        Pass([i], 1, _whole_chunks(lengths[i])) for i in longer
    ]


def compile_layers(model: ScannerModel) -> None:
    """Have torch.compile fuse each layer, at the first pass of each shape."""
    for layer in model.backbone.layers:
        layer.compile(dynamic=False)


def hidden_states(
    model: ScannerModel,
    ids: Sequence[NDArray[np.integer[Any]]],
    match_classes: Sequence[NDArray[np.integer[Any]]] | None,
    dtype: str,
    read: Pass,
    match_features: Sequence[NDArray[np.float32]] | None = None,
) -> Tensor:
    """Hidden states of the sequences of a pass: (rows, width, d_model).

    Each of ``ids`` and ``match_classes`` is (tokens,); the latter are None exactly when the model has no match
    embedding. ``match_features``, each (tokens, features), are None exactly when it has no soft channel. ``dtype``
    is that of matrix products, "bfloat16" or "float32".
    """
    rows = _stacked(ids, read, model.device)
    classes = None if match_classes is None else _stacked(match_classes, read, model.device)
    features = None if match_features is None else _stacked(match_features, read, model.device)
    # run other shapes eagerly, so that layers are not compiled again
    stance = contextlib.nullcontext() if read.compiled else torch.compiler.set_stance("force_eager")
    with stance, torch.autocast(model.device.type, torch.bfloat16, enabled=dtype == "bfloat16"):
        hidden, _ = model(rows, None, classes, match_features=features)
    return hidden  # type: ignore[no-any-return]


def _stacked(rows: Sequence[NDArray[Any]], read: Pass, device: torch.device) -> Tensor:
    """Rows of ids, or of features, as one tensor with zeros after their ends: (rows, width, ...)."""
    dtype = np.float32 if rows[0].dtype.kind == "f" else np.int64
    stacked = np.zeros((read.rows, read.width, *rows[0].shape[1:]), dtype)
    for target, row in zip(stacked, rows, strict=False):  # further rows stay zeros
        target[: len(row)] = row
    return torch.from_numpy(stacked).to(device)


def _whole_chunks(tokens: int) -> int:
    """Round up to whole chunks of the SSD, which saves the copies that it makes for its own padding."""
    return -(-tokens // CHUNK_TOKENS) * CHUNK_TOKENS
