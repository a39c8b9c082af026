"""Token sequences of any length through the model, in segments, for the logits at given positions.

Memory is bounded by the tokens of one step, not by the length of a sequence: what a sequence remembers from
segment to segment is its `ScanState`. Sequences of similar length share a step; where the kernels can
tell them apart, they follow one another in one row (`read_packed`).
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spscanner_rag.mamba2.freed_memory import keep_freed_memory
from spscanner_rag.mamba2.model import ScannerModel, ScanState
from spscanner_rag.mamba2.packed_reader import read_packed
from spscanner_rag.mamba2.token_sequence import TokenSequence, on_device

__all__ = ["PADDING_SHARE", "TokenSequence", "group_by_length", "read_logits"]

PADDING_SHARE = 0.125
"""At most this share of a step's tokens is padding: longer differences in length go to separate steps."""


def read_logits(
    model: ScannerModel,
    sequences: Sequence[TokenSequence],
    segment_tokens: int,
    after_step: Callable[[int], None] | None = None,
) -> list[NDArray[np.float32]]:
    """Logits at the positions of each sequence.

    Parameters
    ----------
    model : ScannerModel
    sequences : sequence of TokenSequence
        All with match classes and priors, or all without, as the model wants.
    segment_tokens : int
        Tokens per step, all sequences of the step together.
    after_step : callable, optional
        Called after each step with the number of tokens read in it (padding not counted). Whatever it raises
        ends the reading.

    Returns
    -------
    list of (units,) float32 arrays, in the order given
    """
    if model.kernels.packs:
        return read_packed(model, sequences, segment_tokens, after_step)
    if model.device.type == "cpu":
        keep_freed_memory()
    results: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * len(sequences)
    lengths = [len(sequence.input_ids) for sequence in sequences]
    for group in group_by_length(lengths, segment_tokens):
        logits = _read_group(model, [sequences[i] for i in group], segment_tokens, after_step)
        for i, values in zip(group, logits, strict=True):
            results[i] = values
    return results


def group_by_length(lengths: Sequence[int], segment_tokens: int) -> list[list[int]]:
    """Indices of sequences that are read together, longest first.

    A group's padding stays within `PADDING_SHARE` and its tokens within one step of ``segment_tokens``, so a
    sequence longer than that is alone.
    """
    groups: list[list[int]] = []
    longest = total = 0
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        together = longest * (len(groups[-1]) + 1) if groups else 0
        padding = together - (total + lengths[i])
        if groups and together <= segment_tokens and padding <= PADDING_SHARE * together:
            groups[-1].append(i)
            total += lengths[i]
        else:
            groups.append([i])
            longest = total = lengths[i]
    return groups


def _read_group(
    model: ScannerModel,
    group: list[TokenSequence],
    segment_tokens: int,
    after_step: Callable[[int], None] | None,
) -> list[NDArray[np.float32]]:
    rows, longest = len(group), max(len(sequence.input_ids) for sequence in group)
    step = max(1, min(longest, segment_tokens // rows))
    logits = [np.empty(len(sequence.positions), np.float32) for sequence in group]
    state = None
    for start in range(0, longest, step):
        stop = min(start + step, longest)
        state = _read_step(model, group, start, stop, state, logits)
        if after_step is not None:
            after_step(sum(max(0, min(stop, len(s.input_ids)) - start) for s in group))
    return logits


@torch.inference_mode()
def _read_step(
    model: ScannerModel,
    group: list[TokenSequence],
    start: int,
    stop: int,
    state: ScanState | None,
    logits: list[NDArray[np.float32]],
) -> ScanState:
    """Read tokens ``start`` to ``stop`` of each sequence and fill in their logits."""
    ids = _padded([s.input_ids[start:stop] for s in group], stop - start, model.device)
    classes = [s.match_classes[start:stop] for s in group if s.match_classes is not None]
    match_classes = _padded(classes, stop - start, model.device) if classes else None
    inside = [slice(*np.searchsorted(s.positions, (start, stop))) for s in group]
    tokens = [s.positions[units] - start for s, units in zip(group, inside, strict=True)]
    rows = [np.full(len(of_row), row) for row, of_row in enumerate(tokens)]
    at = (on_device(np.concatenate(rows), model.device), on_device(np.concatenate(tokens), model.device))
    # Padding stands only after a sequence's end: nothing that is read comes after it.
    hidden, state = model(ids, state, match_classes, at=at)  # (units, d_model)
    priors = [s.prior[units] for s, units in zip(group, inside, strict=True) if s.prior is not None]
    prior = on_device(np.concatenate(priors), model.device) if priors else None
    scores = model.score(hidden, prior).cpu().numpy()  # (units,)
    ends = np.cumsum([len(of_row) for of_row in tokens])[:-1]
    for of_row, units, values in zip(logits, inside, np.split(scores, ends), strict=True):
        of_row[units] = values
    return state


def _padded(rows: Sequence[NDArray[np.integer]], width: int, device: torch.device) -> Tensor:
    """Rows of at most ``width`` numbers as one tensor, zeros after each row's end: (rows, width)."""
    padded = np.zeros((len(rows), width), np.int64)
    for row, values in zip(padded, rows, strict=True):
        row[: len(values)] = values
    return on_device(padded, device)
