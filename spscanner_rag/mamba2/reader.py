"""Read token sequences of any length in segments, and return the logits at given positions.

Only the `ScanState` is carried from segment to segment, so memory does not grow with
length. Sequences of similar length share a step, padded; kernels that pack read all
sequences in one row, without padding.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spscanner_rag.mamba2.model import ScannerModel, ScanState
from spscanner_rag.system.forks import compute_in_forks

AfterStep = Callable[[int], None] | None
"""Called after each step with the number of tokens read in it; an exception that it
raises ends the reading."""

PADDING_SHARE = 0.125
"""Maximum share of padding in a step's tokens: sequences that differ more in length
do not share a step."""

_KEPT_BLOCK = 32 * 2**20 - 2**16
"""Bytes, just below the largest block that raises glibc's threshold
(`DEFAULT_MMAP_THRESHOLD_MAX`)."""


class TokenSequence(NamedTuple):
    """One sequence to read and the positions whose logits are wanted."""

    input_ids: NDArray[np.integer]  # (tokens,)
    positions: NDArray[np.int64]  # (units,), not decreasing
    match_classes: NDArray[np.integer] | None = None  # (tokens,)
    prior: NDArray[np.float32] | None = (
        None  # (units, scores): see `ScannerModel.score`
    )
    match_features: NDArray[np.float32] | None = None  # (tokens, SOFT_FEATURES)


def read_logits(
    model: ScannerModel,
    sequences: Sequence[TokenSequence],
    segment_tokens: int,
    after_step: AfterStep = None,
) -> list[NDArray[np.float32]]:
    """Logits at the positions of each sequence, in the order given: (units,), float32.

    Either all sequences or none have match classes, features and priors. ``after_step``
    does not count padding.
    """
    compute_in_forks()
    if model.kernels.packs:
        groups = [list(range(len(sequences)))] if sequences else []
    else:
        groups = group_by_length(
            [len(sequence.input_ids) for sequence in sequences], segment_tokens
        )
        if model.device.type == "cpu":
            keep_freed_memory()
    results: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * len(sequences)
    for group in groups:
        batch = Batch.of([sequences[i] for i in group], packed=model.kernels.packs)
        logits = _read_batch(model, batch, segment_tokens, after_step)
        stops = np.cumsum([len(sequences[i].positions) for i in group])
        for i, values in zip(group, np.split(logits, stops[:-1]), strict=True):
            results[i] = values
    return results


def group_by_length(lengths: Sequence[int], segment_tokens: int) -> list[list[int]]:
    """Groups of indices of sequences to read together, longest first, within `PADDING_SHARE` and one step."""
    groups: list[list[int]] = []
    longest = total = 0
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        together = longest * (len(groups[-1]) + 1) if groups else 0
        padding = together - (total + lengths[i])
        if (
            groups
            and together <= segment_tokens
            and padding <= PADDING_SHARE * together
        ):
            groups[-1].append(i)
            total += lengths[i]
        else:
            groups.append([i])
            longest = total = lengths[i]
    return groups


class Batch(NamedTuple):
    """Sequences laid out for the model: all in one row, one after the other, or each in a padded row."""

    input_ids: NDArray[np.int64]  # (rows, tokens)
    match_classes: NDArray[np.int64] | None  # (rows, tokens)
    match_features: NDArray[np.float32] | None  # (rows, tokens, SOFT_FEATURES)
    prior: NDArray[np.float32] | None  # (units, scores)
    at: tuple[
        NDArray[np.int64], NDArray[np.int64]
    ]  # rows and tokens of the units: each (units,)
    starts: NDArray[np.int64]  # (sequences,) the first token of each in its row
    stops: NDArray[np.int64]  # (sequences,)
    numbers: (
        NDArray[np.int32] | None
    )  # (tokens,) the number of each token's sequence, if they share a row

    @classmethod
    def of(cls, sequences: Sequence[TokenSequence], *, packed: bool) -> Self:
        """Lay out sequences.

        Padding comes only after a sequence's end, so it changes no logit.
        """
        lengths = np.array(
            [len(sequence.input_ids) for sequence in sequences], np.int64
        )
        numbers = np.arange(len(sequences))
        rows = np.zeros_like(numbers) if packed else numbers
        starts = np.cumsum(lengths) - lengths if packed else np.zeros_like(lengths)
        width = int((starts + lengths).max())

        def laid_out(
            parts: Sequence[NDArray[Any] | None], dtype: type[np.generic]
        ) -> Any:  # noqa: ANN401
            if parts[0] is None:
                return None
            filled = np.zeros(
                (1 if packed else len(parts), width, *parts[0].shape[1:]), dtype
            )
            for row, start, length, values in zip(
                rows, starts, lengths, parts, strict=True
            ):
                filled[row, start : start + length] = values
            return filled

        priors = [
            sequence.prior for sequence in sequences if sequence.prior is not None
        ]
        units = [len(sequence.positions) for sequence in sequences]
        return cls(
            laid_out([sequence.input_ids for sequence in sequences], np.int64),
            laid_out([sequence.match_classes for sequence in sequences], np.int64),
            laid_out([sequence.match_features for sequence in sequences], np.float32),
            np.concatenate(priors) if priors else None,
            (
                np.repeat(rows, units),
                np.concatenate(
                    [
                        s.positions + start
                        for s, start in zip(sequences, starts, strict=True)
                    ]
                ),
            ),
            starts,
            starts + lengths,
            np.repeat(numbers.astype(np.int32), lengths) if packed else None,
        )


def _read_batch(
    model: ScannerModel, batch: Batch, segment_tokens: int, after_step: AfterStep
) -> NDArray[np.float32]:
    """Logits of all units, (units,).

    They stay on the device, so that no step waits for the previous one.
    """
    rows, width = batch.input_ids.shape
    step = max(1, segment_tokens // rows)
    state: ScanState | None = None
    found = [torch.empty(0, dtype=torch.float32, device=model.device)]
    places = [np.empty(0, np.int64)]
    for start in range(0, width, step):
        stop = min(start + step, width)
        units = np.flatnonzero((batch.at[1] >= start) & (batch.at[1] < stop))
        logits, state = _read_step(model, batch, units, start, stop, state)
        found.append(logits)
        places.append(units)
        if after_step is not None:
            after_step(
                int(
                    (
                        np.clip(batch.stops, start, stop)
                        - np.clip(batch.starts, start, stop)
                    ).sum()
                )
            )
    result = np.empty(len(batch.at[0]), np.float32)
    result[np.concatenate(places)] = torch.cat(found).cpu().numpy()
    return result


@torch.inference_mode()
def _read_step(
    model: ScannerModel,
    batch: Batch,
    units: NDArray[np.int64],
    start: int,
    stop: int,
    state: ScanState | None,
) -> tuple[Tensor, ScanState]:
    """Logits of the ``units`` that end in tokens ``start`` to ``stop`` of the rows, and the state after these."""

    def moved(values: NDArray[np.generic] | None, part: Any) -> Tensor | None:  # noqa: ANN401 - an index
        return None if values is None else _on_device(values[part], model.device)

    sequence_index = None
    if batch.numbers is not None:
        numbers = batch.numbers[start:stop]
        numbers = numbers - (
            numbers[0] if state is None else batch.numbers[start - 1]
        )  # 0: the state's
        sequence_index = (
            _on_device(numbers[None], model.device) if numbers[-1] else None
        )  # (1, tokens)
    tokens = np.s_[:, start:stop]
    hidden, state = model(
        _on_device(batch.input_ids[tokens], model.device),
        state,
        moved(batch.match_classes, tokens),
        match_features=moved(batch.match_features, tokens),
        sequence_index=sequence_index,
        at=(
            _on_device(batch.at[0][units], model.device),
            _on_device(batch.at[1][units] - start, model.device),
        ),
    )  # (units, d_model)
    return model.score(hidden, moved(batch.prior, units)), state


def _on_device(values: NDArray[np.generic], device: torch.device) -> Tensor:
    """Copy to the device, to a GPU asynchronously: torch keeps the pinned memory until the copy is done."""
    tensor = torch.from_numpy(np.array(values))
    return (
        tensor.pin_memory().to(device, non_blocking=True)
        if device.type == "cuda"
        else tensor.to(device)
    )


def keep_freed_memory() -> None:
    """Make glibc's malloc keep freed blocks of up to 32 MB: clearing new pages took a third of a scan's time.

    When a larger block is freed, malloc raises its limit to that size. The block here
    is never written to, so it takes no memory.
    """
    block = torch.empty(_KEPT_BLOCK, dtype=torch.uint8)
    del block
