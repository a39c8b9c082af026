"""The passes of a step: sequences that go through the model together, and their hidden states."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.mamba2.reader import Batch, TokenSequence, group_by_length


def passes(lengths: Sequence[int], most_tokens: int, packs: bool) -> list[list[int]]:
    """Divide sequences into passes of ``most_tokens``, padding included, or one; ``packs``: the kernels pack."""
    if not packs:
        return group_by_length(lengths, most_tokens)
    found: list[list[int]] = []
    total = 0
    for number, tokens in enumerate(lengths):
        total += tokens
        if not found or total > most_tokens:
            found.append([])
            total = tokens
        found[-1].append(number)
    return found


def unit_states(model: ScannerModel, sequences: Sequence[TokenSequence], dtype: str) -> list[Tensor]:
    """Hidden states at the unit ends of sequences read in one pass: (units, d_model) each, float32.

    ``dtype`` is that of matrix products. Sequences are packed in one row if the kernels can, else padded.
    """
    batch = Batch.of(sequences, packed=model.kernels.packs)

    def moved(values: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(values).to(model.device)

    with torch.autocast(model.device.type, torch.bfloat16, enabled=dtype == "bfloat16"):
        hidden, _ = model(
            moved(batch.input_ids),
            None,
            None if batch.match_classes is None else moved(batch.match_classes),
            match_features=None if batch.match_features is None else moved(batch.match_features),
            sequence_index=None if batch.numbers is None else moved(batch.numbers[None]),
            at=(moved(batch.at[0]), moved(batch.at[1])),
        )
    return list(hidden.float().split([len(sequence.positions) for sequence in sequences]))
