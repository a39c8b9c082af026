"""Read token sequences of any length in segments, and return the logits at given positions.

Memory is bounded by the tokens of one step, not by the length of a sequence, since only its `ScanState` is carried
from segment to segment. Sequences of similar length share a step, padded to the longest. Kernels that pack read
all sequences one after the other in one row, without padding.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spscanner_rag.mamba2.forks import compute_in_forks
from spscanner_rag.mamba2.layers import ScanState
from spscanner_rag.mamba2.model import ScannerModel

AfterStep = Callable[[int], None] | None
"""Called after each step with the number of tokens read in it; whatever it raises ends the reading."""

PADDING_SHARE = 0.125
"""At most this share of a step's tokens is padding: sequences that differ more in length share no step."""

_KEPT_BLOCK = 32 * 2**20 - 2**16
"""Bytes, just below the largest block from which glibc learns (`DEFAULT_MMAP_THRESHOLD_MAX`)."""


class TokenSequence(NamedTuple):
    """One sequence to read and the positions whose logits are wanted."""

    input_ids: NDArray[np.integer]  # (tokens,)
    positions: NDArray[np.int64]  # (units,), not decreasing
    match_classes: NDArray[np.integer] | None = None  # (tokens,)
    prior: NDArray[np.float32] | None = None  # (units, scores): see `ScannerModel.score`
    match_features: NDArray[np.float32] | None = None  # (tokens, SOFT_FEATURES)


def read_logits(
    model: ScannerModel,
    sequences: Sequence[TokenSequence],
    segment_tokens: int,
    after_step: AfterStep = None,
) -> list[NDArray[np.float32]]:
    """Logits at the positions of each sequence, in the order given: (units,), float32.

    Either all sequences have match classes (or features, or priors) or none has, as the model requires. A step
    reads up to ``segment_tokens`` tokens, over all sequences in it; ``after_step`` does not count padding.
    """
    compute_in_forks()
    if model.kernels.packs:
        return _read_packed(model, sequences, segment_tokens, after_step)
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

    A group's padding stays within `PADDING_SHARE` and its tokens within one step, so a longer sequence is alone.
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
    model: ScannerModel, group: list[TokenSequence], segment_tokens: int, after_step: AfterStep
) -> list[NDArray[np.float32]]:
    rows, longest = len(group), max(len(sequence.input_ids) for sequence in group)
    step = max(1, min(longest, segment_tokens // rows))
    parts = [[np.empty(0, np.float32)] for _ in group]
    state = None
    for start in range(0, longest, step):
        stop = min(start + step, longest)
        values, state = _read_step(model, group, start, stop, state)
        for of_row, of_step in zip(parts, values, strict=True):
            of_row.append(of_step)
        if after_step is not None:
            after_step(sum(max(0, min(stop, len(s.input_ids)) - start) for s in group))
    return [np.concatenate(of_row) for of_row in parts]


@torch.inference_mode()
def _read_step(
    model: ScannerModel, group: list[TokenSequence], start: int, stop: int, state: ScanState | None
) -> tuple[list[NDArray[np.float32]], ScanState]:
    """Logits of the units that end in tokens ``start`` to ``stop`` of each sequence, and the state after these."""
    ids = _padded([s.input_ids[start:stop] for s in group], stop - start, model.device)
    classes = [s.match_classes[start:stop] for s in group if s.match_classes is not None]
    match_classes = _padded(classes, stop - start, model.device) if classes else None
    features = [s.match_features[start:stop] for s in group if s.match_features is not None]
    match_features = _padded(features, stop - start, model.device) if features else None
    inside = [slice(*np.searchsorted(s.positions, (start, stop))) for s in group]
    tokens = [s.positions[units] - start for s, units in zip(group, inside, strict=True)]
    rows = [np.full(len(of_row), row) for row, of_row in enumerate(tokens)]
    at = (_on_device(np.concatenate(rows), model.device), _on_device(np.concatenate(tokens), model.device))
    # Padding comes only after a sequence's end, so it changes no logit.
    hidden, state = model(ids, state, match_classes, match_features=match_features, at=at)  # (units, d_model)
    priors = [s.prior[units] for s, units in zip(group, inside, strict=True) if s.prior is not None]
    prior = _on_device(np.concatenate(priors), model.device) if priors else None
    logits = model.score(hidden, prior).cpu().numpy()  # (units,)
    return np.split(logits, np.cumsum([len(of_row) for of_row in tokens])[:-1]), state


def _padded(rows: Sequence[NDArray[Any]], width: int, device: torch.device) -> Tensor:
    """Rows of at most ``width`` ids or features as one tensor, zeros after each row's end: (rows, width, ...)."""
    dtype = np.float32 if rows[0].dtype.kind == "f" else np.int64
    padded = np.zeros((len(rows), width, *rows[0].shape[1:]), dtype)
    for row, values in zip(padded, rows, strict=True):
        row[: len(values)] = values
    return _on_device(padded, device)


def _read_packed(
    model: ScannerModel, sequences: Sequence[TokenSequence], segment_tokens: int, after_step: AfterStep
) -> list[NDArray[np.float32]]:
    """Read all sequences as one row. The logits stay on the device, so that no step waits for the one before."""
    if not sequences:
        return []
    row, numbers = _joined(sequences)
    state: ScanState | None = None
    parts = [torch.empty(0, dtype=torch.float32, device=model.device)]
    for start in range(0, len(numbers), segment_tokens):
        stop = min(start + segment_tokens, len(numbers))
        values, state = _read_packed_step(model, row, numbers, start, stop, state)
        parts.append(values)
        if after_step is not None:
            after_step(stop - start)
    return np.split(torch.cat(parts).cpu().numpy(), np.cumsum([len(s.positions) for s in sequences])[:-1])


@torch.inference_mode()
def _read_packed_step(
    model: ScannerModel,
    row: TokenSequence,
    numbers: NDArray[np.int32],
    start: int,
    stop: int,
    state: ScanState | None,
) -> tuple[Tensor, ScanState]:
    """Logits of the units that end in tokens ``start`` to ``stop`` of the row, and the state after these."""
    number = numbers[start:stop]
    number = number - (number[0] if state is None else numbers[start - 1])  # 0: the state's sequence
    units = slice(*np.searchsorted(row.positions, (start, stop)))
    tokens = _on_device(row.positions[units] - start, model.device)  # (units,)
    classes, features = row.match_classes, row.match_features
    hidden, state = model(
        _on_device(row.input_ids[None, start:stop], model.device),
        state,
        None if classes is None else _on_device(classes[None, start:stop], model.device),
        match_features=None if features is None else _on_device(features[None, start:stop], model.device),
        sequence_index=_on_device(number[None], model.device) if number[-1] else None,  # (1, tokens)
        at=(torch.zeros_like(tokens), tokens),
    )
    return model.score(
        hidden, None if row.prior is None else _on_device(row.prior[units], model.device)
    ), state


def _joined(sequences: Sequence[TokenSequence]) -> tuple[TokenSequence, NDArray[np.int32]]:
    """Concatenate sequences; also return the index of each token's sequence, (tokens,)."""
    lengths = np.array([len(sequence.input_ids) for sequence in sequences], np.int64)
    starts = np.cumsum(lengths) - lengths
    classes = [s.match_classes for s in sequences if s.match_classes is not None]
    priors = [s.prior for s in sequences if s.prior is not None]
    features = [s.match_features for s in sequences if s.match_features is not None]
    joined = TokenSequence(
        np.concatenate([s.input_ids for s in sequences]).astype(np.int64),
        np.concatenate([s.positions + start for s, start in zip(sequences, starts, strict=True)]),
        np.concatenate(classes).astype(np.int64) if classes else None,
        np.concatenate(priors) if priors else None,
        np.concatenate(features) if features else None,
    )
    return joined, np.repeat(np.arange(len(sequences), dtype=np.int32), lengths)


def _on_device(values: NDArray[np.generic], device: torch.device) -> Tensor:
    """Copy to the device, to a GPU asynchronously: torch keeps the pinned memory until the copy is done."""
    tensor = torch.from_numpy(np.array(values))
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


def keep_freed_memory() -> None:
    """Have glibc's malloc keep freed blocks of up to 32 MB, and up to 64 MB of them, for the next allocation.

    By default it returns the memory of every large tensor to the system, which must clear each page again for the
    next one: a third of a scan's time on a CPU. glibc raises its limit to the size of any larger block that is
    freed, so this frees such a block without ever writing to it. That uses no memory, takes microseconds, and has
    no effect on other allocators.
    """
    block = torch.empty(_KEPT_BLOCK, dtype=torch.uint8)
    del block
