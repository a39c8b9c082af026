"""Which sequences of a step go through the model together, and in what shape; compiled layers, if wanted."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.mamba2.reader import group_by_length
from spscanner_rag.mamba2.ssd import CHUNK_TOKENS


@dataclass(frozen=True, slots=True)
class Pass:
    """Sequences that are read together.

    Attributes
    ----------
    members
        Their numbers.
    rows, width
        Shape that they are padded to. What is padding stands after a sequence's end or in a row of its own,
        where nothing that counts is read.
    compiled
        Whether this is the shape that compiled layers were made for.
    """

    members: Sequence[int]
    rows: int
    width: int
    compiled: bool = False

    def stance(self) -> contextlib.AbstractContextManager[object]:
        """A context in which layers that are compiled compute this pass without being compiled anew."""
        if self.compiled:
            return contextlib.nullcontext()
        eager: contextlib.AbstractContextManager[object] = torch.compiler.set_stance("force_eager")
        return eager


def passes(lengths: Sequence[int], length: int, most_tokens: int, compiled: bool) -> list[Pass]:
    """Passes of one step.

    Parameters
    ----------
    lengths : sequence of int
        Tokens of each sequence.
    length : int
        What the step's sequences are meant to have.
    most_tokens : int
        Tokens of a pass, padding included; a single sequence may have more.
    compiled : bool
        Whether all passes of such a step are to have one shape: compiling one takes half a minute and more.
        Sequences longer than meant are passes of their own, not compiled.

    Returns
    -------
    list of Pass
        With each sequence once.
    """
    if not compiled:
        groups = group_by_length(lengths, most_tokens)
        return [Pass(group, len(group), _whole_chunks(max(lengths[i] for i in group))) for group in groups]
    width = _whole_chunks(length)
    fitting = [i for i, tokens in enumerate(lengths) if tokens <= width]
    rows = max(1, most_tokens // width)
    together = [fitting[start : start + rows] for start in range(0, len(fitting), rows)]
    longer = [i for i, tokens in enumerate(lengths) if tokens > width]
    return [Pass(group, min(rows, len(lengths)), width, compiled=True) for group in together] + [
        Pass([i], 1, _whole_chunks(lengths[i])) for i in longer
    ]


def compile_layers(model: ScannerModel) -> None:
    """Have torch.compile make one kernel of each layer's many small steps, at the first pass of each shape."""
    for layer in model.backbone.layers:
        layer.compile(dynamic=False)


def _whole_chunks(tokens: int) -> int:
    """Up to a whole number of the SSD's chunks, which saves copies for its own padding."""
    return -(-tokens // CHUNK_TOKENS) * CHUNK_TOKENS
