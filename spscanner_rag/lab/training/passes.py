"""Which sequences of a step go through the model together, in what shape, and their hidden states."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spscanner_rag.lab.training.packed import packed_states
from spscanner_rag.lab.training.stream import stream_states
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.mamba2.reader import group_by_length
from spscanner_rag.mamba2.ssd import CHUNK_TOKENS
from spscanner_rag.scan.devices import DTYPES


@dataclass(frozen=True, slots=True)
class Pass:
    """Sequences that are read together.

    Each has a row of its own, and padding after its end, or all follow each other in a stream.
    """

    members: Sequence[int]  # the examples' numbers in the step
    width: int = 0  # tokens of a row; 0 for a stream

    @property
    def is_stream(self) -> bool:
        """Whether the sequences follow each other, as compiled layers and kernels that pack read them."""
        return not self.width


def passes(lengths: Sequence[int], most_tokens: int, streams: bool) -> list[Pass]:
    """Divide the sequences of a step into passes.

    Parameters
    ----------
    lengths : sequence of int
        Tokens of each sequence.
    most_tokens : int
        Tokens of a pass, padding of rows included; a single sequence may have more.
    streams : bool
        Whether all passes are streams: the layers are compiled, or the kernels pack.
    """
    if not streams:
        groups = group_by_length(lengths, most_tokens)
        return [Pass(group, _whole_chunks(max(lengths[i] for i in group))) for group in groups]
    found: list[list[int]] = []
    total = 0
    for number, tokens in enumerate(lengths):
        total += tokens
        if not found or total > most_tokens:
            found.append([])
            total = tokens
        found[-1].append(number)
    return [Pass(members) for members in found]


def compile_layers(model: ScannerModel) -> None:
    """Have torch.compile fuse each layer, at the first pass, for the one shape of a stream's segments."""
    for layer in model.backbone.layers:
        layer.compile(dynamic=False)


def hidden_states(
    model: ScannerModel,
    ids: Sequence[NDArray[np.integer[Any]]],
    match_classes: Sequence[NDArray[np.integer[Any]]] | None,
    dtype: str,
    read: Pass,
    match_features: Sequence[NDArray[np.float32]] | None = None,
) -> list[Tensor]:
    """Hidden states of the sequences of a pass: (tokens, d_model) each.

    Each of ``ids`` and ``match_classes`` is (tokens,); the latter are None exactly when the model has no match
    embedding. ``match_features``, each (tokens, features), are None exactly when it has no soft channel. ``dtype``
    is that of matrix products, "bfloat16" or "float32".
    """
    with torch.autocast(model.device.type, torch.bfloat16, enabled=dtype == "bfloat16"):
        if read.is_stream and model.kernels.packs:
            return packed_states(model, ids, match_classes, match_features)
        if read.is_stream:
            return stream_states(model, ids, match_classes, match_features, DTYPES[dtype])
        rows, classes, features = (
            None if of_tokens is None else _stacked(of_tokens, read.width, model.device)
            for of_tokens in (ids, match_classes, match_features)
        )
        hidden, _ = model(rows, None, classes, match_features=features)  # (rows, width, d_model)
    return [row[: len(of_row)] for row, of_row in zip(hidden, ids, strict=True)]


def _stacked(rows: Sequence[NDArray[Any]], width: int, device: torch.device) -> Tensor:
    """Rows of ids, or of features, as one tensor with zeros after their ends: (rows, width, ...)."""
    dtype = np.float32 if rows[0].dtype.kind == "f" else np.int64
    stacked = np.zeros((len(rows), width, *rows[0].shape[1:]), dtype)
    for target, row in zip(stacked, rows, strict=True):
        target[: len(row)] = row
    return torch.from_numpy(stacked).to(device)


def _whole_chunks(tokens: int) -> int:
    """Round up to whole chunks of the SSD, which saves the copies that it makes for its own padding."""
    return -(-tokens // CHUNK_TOKENS) * CHUNK_TOKENS
