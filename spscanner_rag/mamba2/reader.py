"""Read token sequences of any length in segments: the logits at positions of each.

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
    prior: NDArray[np.float32] | None = None  # (units, scores), `ScannerModel.score`
    match_features: NDArray[np.float32] | None = None  # (tokens, SOFT_FEATURES)


def read_logits(
    model: ScannerModel,
    sequences: Sequence[TokenSequence],
    segment_tokens: int,
    after_step: AfterStep = None,
) -> list[NDArray[np.float32]]:
    """Return the logits at the positions of each sequence: (units,), float32.

    Parameters
    ----------
    model : ScannerModel
        The model that reads.
    sequences : sequence of TokenSequence
        The results have the same order. Either all or none have match classes, features
        and priors.
    segment_tokens : int
        Tokens per forward pass, at least 1.
    after_step : callable, optional
        Called with the tokens read in each step, without padding.
    """
    compute_in_forks()
    if model.kernels.packs:
        groups = [list(range(len(sequences)))] if sequences else []
    else:
        lengths = [len(sequence.input_ids) for sequence in sequences]
        groups = group_by_length(lengths, segment_tokens)
        if model.device.type == "cpu":
            keep_freed_memory()
    results: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * len(sequences)
    for group in groups:
        members = [sequences[number] for number in group]
        batch = SequenceBatch.of(members, packed=model.kernels.packs)
        logits = _read_batch(model, batch, segment_tokens, after_step)
        stops = np.cumsum([len(sequence.positions) for sequence in members])
        for number, part in zip(group, np.split(logits, stops[:-1]), strict=True):
            results[number] = part
    return results


def group_by_length(lengths: Sequence[int], segment_tokens: int) -> list[list[int]]:
    """Return groups of indices of sequences to read together, longest first.

    A group fits into one step, with padding of at most `PADDING_SHARE`.

    Examples
    --------
    >>> from spscanner_rag.mamba2.reader import group_by_length
    >>> group_by_length([10, 100, 98], segment_tokens=512)
    [[1, 2], [0]]
    """
    groups: list[list[int]] = []
    longest = 0
    total = 0
    for number in sorted(range(len(lengths)), key=lambda number: -lengths[number]):
        length = lengths[number]
        padded = longest * (len(groups[-1]) + 1) if groups else 0
        padding = padded - (total + length)
        fits = padded <= segment_tokens and padding <= PADDING_SHARE * padded
        if groups and fits:
            groups[-1].append(number)
            total += length
        else:
            groups.append([number])
            longest = length
            total = length
    return groups


class SequenceBatch(NamedTuple):
    """Sequences laid out for the model: all in one row, or each in a padded row."""

    input_ids: NDArray[np.int64]  # (rows, tokens)
    match_classes: NDArray[np.int64] | None  # (rows, tokens)
    match_features: NDArray[np.float32] | None  # (rows, tokens, SOFT_FEATURES)
    prior: NDArray[np.float32] | None  # (units, scores)
    unit_rows: NDArray[np.int64]  # (units,)
    unit_tokens: NDArray[np.int64]  # (units,): the unit's token in its row
    starts: NDArray[np.int64]  # (sequences,) the first token of each in its row
    stops: NDArray[np.int64]  # (sequences,)
    # (tokens,) the number of each token's sequence, if they share a row
    numbers: NDArray[np.int32] | None

    @classmethod
    def of(cls, sequences: Sequence[TokenSequence], *, packed: bool) -> Self:
        """Lay out sequences.

        Padding comes only after a sequence's end, so it changes no logit.
        """
        lengths = np.array(
            [len(sequence.input_ids) for sequence in sequences], np.int64
        )
        numbers = np.arange(len(sequences))
        numbers_of_tokens = None
        if packed:
            rows = np.zeros_like(numbers)
            starts = np.cumsum(lengths) - lengths
            numbers_of_tokens = np.repeat(numbers.astype(np.int32), lengths)
        else:
            rows = numbers
            starts = np.zeros_like(lengths)
        layout = _Places(rows, starts, lengths)
        priors = []
        unit_tokens = []
        for sequence, start in zip(sequences, starts, strict=True):
            unit_tokens.append(sequence.positions + start)
            if sequence.prior is not None:
                priors.append(sequence.prior)
        units = [len(positions) for positions in unit_tokens]
        return cls(
            input_ids=layout.filled([s.input_ids for s in sequences], np.int64),
            match_classes=layout.filled([s.match_classes for s in sequences], np.int64),
            match_features=layout.filled(
                [s.match_features for s in sequences], np.float32
            ),
            prior=np.concatenate(priors) if priors else None,
            unit_rows=np.repeat(rows, units),
            unit_tokens=np.concatenate(unit_tokens),
            starts=starts,
            stops=starts + lengths,
            numbers=numbers_of_tokens,
        )

    def tokens_between(self, start: int, stop: int) -> int:
        """Return how many tokens of all sequences lie in these columns."""
        stops = np.clip(self.stops, start, stop)
        starts = np.clip(self.starts, start, stop)
        return int((stops - starts).sum())


class _Places(NamedTuple):
    """Where each sequence lies in the rows of a batch: each (sequences,)."""

    rows: NDArray[np.int64]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]

    def filled(
        self, parts: Sequence[NDArray[Any] | None], dtype: type[np.generic]
    ) -> Any:  # noqa: ANN401 - an array, or None if the sequences have none
        """The sequences' values in rows, zeros where there is no sequence."""
        if parts[0] is None:
            return None
        n_rows = int(self.rows[-1]) + 1
        width = int((self.starts + self.lengths).max())
        filled = np.zeros((n_rows, width, *parts[0].shape[1:]), dtype)
        for row, start, length, values in zip(*self, parts, strict=True):
            filled[row, start : start + length] = values
        return filled


def _read_batch(
    model: ScannerModel,
    batch: SequenceBatch,
    segment_tokens: int,
    after_step: AfterStep,
) -> NDArray[np.float32]:
    """Logits of all units, (units,).

    They stay on the device, so that no step waits for the previous one.
    """
    rows, width = batch.input_ids.shape
    step = max(1, segment_tokens // rows)
    state: ScanState | None = None
    logits_of_steps = [torch.empty(0, dtype=torch.float32, device=model.device)]
    units_of_steps = [np.empty(0, np.int64)]
    for start in range(0, width, step):
        stop = min(start + step, width)
        ends_inside = (batch.unit_tokens >= start) & (batch.unit_tokens < stop)
        units = np.flatnonzero(ends_inside)
        logits, state = _read_step(model, batch, units, start, stop, state)
        logits_of_steps.append(logits)
        units_of_steps.append(units)
        if after_step is not None:
            after_step(batch.tokens_between(start, stop))
    logits_of_units = np.empty(len(batch.unit_rows), np.float32)
    order = np.concatenate(units_of_steps)
    logits_of_units[order] = torch.cat(logits_of_steps).cpu().numpy()
    return logits_of_units


@torch.inference_mode()
def _read_step(
    model: ScannerModel,
    batch: SequenceBatch,
    units: NDArray[np.int64],
    start: int,
    stop: int,
    state: ScanState | None,
) -> tuple[Tensor, ScanState]:
    """Logits of the ``units`` that end in some columns of the rows, and the new state.

    The columns are those from ``start`` to ``stop``; ``state`` is that before them.
    """
    tokens = np.s_[:, start:stop]
    # (units, d_model)
    hidden, state = model(
        _on_device(batch.input_ids[tokens], model.device),
        state,
        _part_on_device(batch.match_classes, tokens, model.device),
        match_features=_part_on_device(batch.match_features, tokens, model.device),
        sequence_index=_sequence_index(batch, start, stop, state is None, model.device),
        at=(
            _on_device(batch.unit_rows[units], model.device),
            _on_device(batch.unit_tokens[units] - start, model.device),
        ),
    )
    prior = _part_on_device(batch.prior, units, model.device)
    return model.score(hidden, prior), state


def _sequence_index(
    batch: SequenceBatch,
    start: int,
    stop: int,
    is_first: bool,
    device: torch.device,
) -> Tensor | None:
    """The number of each column's sequence, (1, tokens), 0 for the state's.

    None if there is one sequence a row.
    """
    if batch.numbers is None:
        return None
    numbers = batch.numbers[start:stop]
    number_of_state = numbers[0] if is_first else batch.numbers[start - 1]
    numbers = numbers - number_of_state
    if not numbers[-1]:
        return None
    return _on_device(numbers[None], device)


def _part_on_device(
    values: NDArray[np.generic] | None,
    part: Any,  # noqa: ANN401 - an index
    device: torch.device,
) -> Tensor | None:
    return None if values is None else _on_device(values[part], device)


def _on_device(values: NDArray[np.generic], device: torch.device) -> Tensor:
    """Copy to the device, to a GPU asynchronously.

    torch keeps the pinned memory until the copy is done.
    """
    tensor = torch.from_numpy(np.array(values))
    if device.type == "cuda":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def keep_freed_memory() -> None:
    """Make glibc's malloc keep freed blocks of up to 32 MB.

    Clearing new pages took a third of a scan's time. When a larger block is freed,
    malloc raises its limit to that size. The block here is never written to, so it
    takes no memory.
    """
    block = torch.empty(_KEPT_BLOCK, dtype=torch.uint8)
    del block
