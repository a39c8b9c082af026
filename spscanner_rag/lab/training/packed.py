"""Sequences that are read one after the other in one row, by kernels that keep them apart."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spscanner_rag.mamba2.model import ScannerModel


def packed_states(
    model: ScannerModel,
    ids: Sequence[NDArray[np.integer[Any]]],
    match_classes: Sequence[NDArray[np.integer[Any]]] | None,
    match_features: Sequence[NDArray[np.float32]] | None,
) -> list[Tensor]:
    """Hidden states of each sequence, (tokens, d_model), as if it were read alone; no token is padding.

    Each of ``ids`` and ``match_classes`` is (tokens,), each of ``match_features`` (tokens, features), as in
    `ScannerModel.forward`. The model's kernels must pack.
    """
    lengths = torch.tensor([len(row) for row in ids])
    numbers = torch.arange(len(ids), dtype=torch.int32).repeat_interleave(lengths)  # (tokens of all,)
    rows, classes, features = (
        None if of_tokens is None else torch.from_numpy(np.concatenate(of_tokens))[None]
        for of_tokens in (ids, match_classes, match_features)
    )
    assert rows is not None
    hidden, _ = model(
        rows.to(model.device).long(),
        None,
        None if classes is None else classes.to(model.device).long(),
        match_features=None if features is None else features.to(model.device),
        sequence_index=numbers[None].to(model.device),
    )
    return list(hidden[0].split(lengths.tolist()))
