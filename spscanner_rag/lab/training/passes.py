"""The passes of a step: sequences that go through the model together, their shape and hidden states."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.mamba2.reader import TokenSequence, group_by_length
from spscanner_rag.mamba2.ssd import CHUNK_TOKENS


@dataclass(frozen=True, slots=True)
class Pass:
    """Sequences that are read together: packed one after the other in one row, or each in a padded row."""

    members: Sequence[int]  # the examples' numbers in the step
    width: int = 0  # tokens of a padded row; 0 if the sequences are packed

    @property
    def is_packed(self) -> bool:
        """True if the sequences follow each other in one row, for kernels that keep them apart."""
        return not self.width


def passes(lengths: Sequence[int], most_tokens: int, packs: bool) -> list[Pass]:
    """Divide sequences into passes of ``most_tokens``, padding included, or one; ``packs``: the kernels pack."""
    if not packs:
        groups = group_by_length(lengths, most_tokens)
        # whole chunks of the SSD save the copies that it makes for its own padding
        return [
            Pass(group, -(-max(lengths[i] for i in group) // CHUNK_TOKENS) * CHUNK_TOKENS) for group in groups
        ]
    found: list[list[int]] = []
    total = 0
    for number, tokens in enumerate(lengths):
        total += tokens
        if not found or total > most_tokens:
            found.append([])
            total = tokens
        found[-1].append(number)
    return [Pass(members) for members in found]


def hidden_states(
    model: ScannerModel, sequences: Sequence[TokenSequence], dtype: str, read: Pass
) -> list[Tensor]:
    """Hidden states of the sequences of a pass, (tokens, d_model) each; ``dtype`` is that of matrix products."""
    lengths, index = [len(sequence.input_ids) for sequence in sequences], None
    if read.is_packed:
        # (1, tokens of all): which sequence a token belongs to
        index = torch.arange(len(lengths), dtype=torch.int32).repeat_interleave(torch.tensor(lengths))[None]
        index = index.to(model.device)
    rows, classes, features = (
        None if of_tokens[0] is None else _joined(of_tokens, read.width).to(model.device)
        for of_tokens in zip(
            *((s.input_ids, s.match_classes, s.match_features) for s in sequences), strict=True
        )
    )
    with torch.autocast(model.device.type, torch.bfloat16, enabled=dtype == "bfloat16"):
        hidden, _ = model(rows, None, classes, match_features=features, sequence_index=index)
    if read.is_packed:
        return list(hidden[0].split(lengths))
    return [row[:length] for row, length in zip(hidden, lengths, strict=True)]


def _joined(rows: Sequence[NDArray[Any]], width: int) -> Tensor:
    """Rows of ids or features one after the other, (1, tokens, ...), or padded with zeros, (rows, width, ...)."""
    dtype = np.float32 if rows[0].dtype.kind == "f" else np.int64
    if not width:
        return torch.from_numpy(np.concatenate(rows).astype(dtype))[None]
    stacked = np.zeros((len(rows), width, *rows[0].shape[1:]), dtype)
    for target, row in zip(stacked, rows, strict=True):
        target[: len(row)] = row
    return torch.from_numpy(stacked)
