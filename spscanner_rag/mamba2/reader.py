"""Read token sequences of any length in segments: the logits at positions of each.

Only the `ScanState` is carried from segment to segment, so memory does not grow with
length. Sequences of similar length share a step, padded; kernels that pack read all
sequences in one row, without padding.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.model import ScannerModel, ScanState
from spscanner_rag.mamba2.token_sequences import (
    AfterStep,
    SequenceBatch,
    TokenSequence,
    group_by_length,
)
from spscanner_rag.system.forks import compute_in_forks

_KEPT_BLOCK = 32 * 2**20 - 2**16
"""Bytes, just below the largest block that raises glibc's threshold
(`DEFAULT_MMAP_THRESHOLD_MAX`)."""


class TorchTokenReader:
    """A `TokenReader` that computes with a model in torch, on any device."""

    def __init__(self, model: ScannerModel) -> None:
        self.model = model

    @property
    def config(self) -> Mamba2Config:
        """The sizes of the model."""
        return self.model.config

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self.model.device

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the weights."""
        return self.model.dtype

    @property
    def backend(self) -> str:
        """The name of the kernels that compute the layers."""
        return self.model.kernels.name

    @property
    def most_tokens(self) -> int:
        """Maximum number of tokens in one forward pass."""
        return self.model.kernels.most_tokens(self.model.config)

    @property
    def n_parameters(self) -> int:
        """How many numbers were trained."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    @property
    def n_embedded(self) -> int:
        """How many of them are the embedding's."""
        return self.model.backbone.embedding.weight.numel()

    def read_logits(
        self,
        sequences: Sequence[TokenSequence],
        segment_tokens: int,
        after_step: AfterStep = None,
    ) -> list[NDArray[np.float32]]:
        """Return the logits of each sequence, as `TokenReader` says."""
        return read_logits(self.model, sequences, segment_tokens, after_step)


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
