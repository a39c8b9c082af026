"""Sequences read as one row, one behind the other: no padding, and steps that are all of one length."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spscanner_rag.mamba2.model import ScannerModel, ScanState
from spscanner_rag.mamba2.token_sequence import TokenSequence, on_device


def read_packed(
    model: ScannerModel,
    sequences: Sequence[TokenSequence],
    segment_tokens: int,
    after_step: Callable[[int], None] | None,
) -> list[NDArray[np.float32]]:
    """As `read_logits`: all sequences as one row, one behind the other, in steps of the same length.

    The logits stay on the device until the end, so that no step waits for the one before.
    """
    stream = _joined(sequences)
    state: ScanState | None = None
    parts = []
    for start in range(0, len(stream.input_ids), segment_tokens):
        stop = min(start + segment_tokens, len(stream.input_ids))
        values, state = _read_packed_step(model, stream, start, stop, state)
        parts.append(values)
        if after_step is not None:
            after_step(stop - start)
    logits = torch.cat(parts).cpu().numpy() if parts else np.empty(0, np.float32)
    return np.split(logits, np.cumsum([len(s.positions) for s in sequences])[:-1]) if sequences else []


@torch.inference_mode()
def _read_packed_step(
    model: ScannerModel, stream: "_Stream", start: int, stop: int, state: ScanState | None
) -> tuple[Tensor, ScanState]:
    """Logits of the units that end in tokens ``start`` to ``stop`` of the stream, and the state after these."""

    def part(values: NDArray[np.generic], begin: int, end: int) -> Tensor:
        return on_device(values[begin:end], model.device)

    number = stream.numbers[start:stop]
    number = number - (number[0] if state is None else stream.numbers[start - 1])  # 0: the state's sequence
    index = on_device(number[None], model.device) if number[-1] else None  # (1, tokens)
    classes, prior = stream.match_classes, stream.prior
    first, last = (int(unit) for unit in np.searchsorted(stream.positions, (start, stop)))
    tokens = part(stream.positions - start, first, last)  # (units,)
    hidden, state = model(
        part(stream.input_ids, start, stop)[None],
        state,
        None if classes is None else part(classes, start, stop)[None],
        sequence_index=index,
        at=(torch.zeros_like(tokens), tokens),
    )
    return model.score(hidden, None if prior is None else part(prior, first, last)), state


class _Stream(NamedTuple):
    """Sequences one behind the other."""

    input_ids: NDArray[np.int64]  # (tokens,)
    numbers: NDArray[np.int32]  # (tokens,): which sequence a token is of
    positions: NDArray[np.int64]  # (units,)
    match_classes: NDArray[np.int64] | None  # (tokens,)
    prior: NDArray[np.float32] | None  # (units, lexical scores)


def _joined(sequences: Sequence[TokenSequence]) -> _Stream:
    lengths = np.array([len(sequence.input_ids) for sequence in sequences], np.int64)
    starts = np.cumsum(lengths) - lengths
    classes = [s.match_classes for s in sequences if s.match_classes is not None]
    priors = [s.prior for s in sequences if s.prior is not None]
    none = np.empty(0, np.int64)  # there may be no sequence at all
    return _Stream(
        np.concatenate([none, *(s.input_ids for s in sequences)]),
        np.repeat(np.arange(len(sequences), dtype=np.int32), lengths),
        np.concatenate([none, *(s.positions + start for s, start in zip(sequences, starts, strict=True))]),
        np.concatenate([none, *classes]) if classes else None,
        np.concatenate(priors) if priors else None,
    )
