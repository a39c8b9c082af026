"""Sequences that are read one after the other, as a stream, in segments of one shape: for compiled layers.

torch.compile has to compile one short shape only, hardly any token is padding, and the intermediate results of a
segment stay in the processor's caches. Gradients flow back from segment to segment, as through whole sequences.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spscanner_rag.lab.training.stream_kernels import StreamKernels
from spscanner_rag.mamba2.layers import LayerState, ScanState
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.mamba2.ssd import CHUNK_TOKENS

SEGMENT_TOKENS = 1024
"""Tokens of a segment. 256 make a step a quarter slower; a pass has half a segment of padding on average."""

_KERNELS = StreamKernels()  # one object, since the compiler makes another graph for another


def stream_states(
    model: ScannerModel,
    ids: Sequence[NDArray[np.integer[Any]]],
    match_classes: Sequence[NDArray[np.integer[Any]]] | None,
    match_features: Sequence[NDArray[np.float32]] | None,
    dtype: torch.dtype,
) -> list[Tensor]:
    """Hidden states of each sequence, (tokens, d_model), as if it were read alone.

    Each of ``ids`` and ``match_classes`` is (tokens,), each of ``match_features`` (tokens, features), as in
    `ScannerModel.forward`. ``dtype`` is that of matrix products.
    """
    lengths = [len(row) for row in ids]
    gap = model.config.d_conv - 1
    spaces = [-(-(length + gap) // CHUNK_TOKENS) * CHUNK_TOKENS for length in lengths]
    spaces[-1] += -sum(spaces) % SEGMENT_TOKENS
    # embedded all at once: the gradient of the embedding is a tensor of its full size for each time
    embedded = model.embedded(
        _joined(ids, spaces, model.device),
        None if match_classes is None else _joined(match_classes, spaces, model.device),
        None if match_features is None else _joined(match_features, spaces, model.device),
    )[0]  # (stream, d_model)
    numbers = torch.arange(len(ids), dtype=torch.int32).repeat_interleave(torch.tensor(spaces))  # (stream,)
    state, before, parts = _start(model, dtype), 0, []
    with _stream_kernels(model):
        for segment, number in zip(_segments(embedded), _segments(numbers), strict=True):
            index = (number - before)[None].to(model.device)  # 0: the sequence that the state belongs to
            part, state = model.backbone(segment[None], state, index, None)
            parts.append(part[0])
            before = int(number[-1])
    found = torch.split_with_sizes(torch.cat(parts), spaces)
    return [states[:length] for states, length in zip(found, lengths, strict=True)]


def _segments(stream: Tensor) -> tuple[Tensor, ...]:
    """``stream``, (tokens, ...), cut into segments."""
    return stream.view(-1, SEGMENT_TOKENS, *stream.shape[1:]).unbind()


def _joined(rows: Sequence[NDArray[Any]], spaces: Sequence[int], device: torch.device) -> Tensor:
    """Rows one after the other, each followed by zeros up to its space: (1, stream, ...)."""
    dtype = np.float32 if rows[0].dtype.kind == "f" else np.int64
    joined = np.zeros((1, sum(spaces), *rows[0].shape[1:]), dtype)
    for end, space, row in zip(np.cumsum(spaces), spaces, rows, strict=True):
        joined[0, end - space : end - space + len(row)] = row
    return torch.from_numpy(joined).to(device)


def _start(model: ScannerModel, dtype: torch.dtype) -> ScanState:
    """Zeros that look to the compiler like the state after a segment: in its dtypes, with gradients."""
    layers = model.initial_state(1).layers
    return ScanState(
        tuple(LayerState(s.conv.to(dtype).requires_grad_(), s.ssm.requires_grad_()) for s in layers)
    )


@contextmanager
def _stream_kernels(model: ScannerModel) -> Iterator[None]:
    """Have the model compute with `StreamKernels` for a while."""
    usual = model.kernels
    model.use_kernels(_KERNELS)
    try:
        yield
    finally:
        model.use_kernels(usual)
