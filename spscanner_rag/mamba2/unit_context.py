"""What the units around a unit say about it: layers that read one vector for each unit, in both directions.

A scanner reads forwards, so the logit of a sentence knows nothing of the sentences after it, nor which others of
the document seem to answer the question. These layers read what the scanner noted at the ends of all units: first
forwards, then backwards. There is one narrow vector for some 25 tokens, so this costs little beside reading the
tokens, and stays linear in the length of the document.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spscanner_rag.mamba2.backbone import Block, initial_layer_state
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.norms import RMSNorm

STEP_UNITS = 4096
"""Units that a layer reads at once; what it remembers is carried on, so memory does not grow with their number."""

_HEADS_PER_EXPANSION = 2


def context_config(config: Mamba2Config, width: int) -> Mamba2Config:
    """The shape of the two layers: ``width`` channels, and the state of the scanner's own layers.

    Raises ``ValueError`` for an odd width.
    """
    if width % _HEADS_PER_EXPANSION:
        raise ValueError(f"context_width is {width}; expected an even number")
    return Mamba2Config(
        d_model=width,
        n_layer=2,
        vocab_size=1,
        norm_epsilon=config.norm_epsilon,
        d_state=config.d_state,
        headdim=width // _HEADS_PER_EXPANSION,
    )


class UnitContext(nn.Module):
    """What to add to the logit of each unit, from all units of its sequence.

    Parameters
    ----------
    config : Mamba2Config
        Of the scanner.
    noted : int
        Numbers that are known of each unit before: its hidden state, its logit and its lexical scores.
    width : int
        Channels of the vector that is kept of each unit, and of the layers.
    """

    def __init__(self, config: Mamba2Config, noted: int, width: int) -> None:
        super().__init__()
        shape = context_config(config, width)
        self.width = width
        self.in_proj = nn.Linear(noted, width)
        self.forwards = Block(shape)
        self.backwards = Block(shape)
        self.norm = RMSNorm(width, shape.norm_epsilon)
        self.out_proj = nn.Linear(width, 1, bias=False)
        nn.init.zeros_(self.out_proj.weight)  # no effect before training

    @property
    def layers(self) -> tuple[Block, Block]:
        """The layers in the order in which they read."""
        return self.forwards, self.backwards

    def vectors(self, noted: Tensor) -> Tensor:
        """What is kept of each unit, (units, width), float32, from ``noted``, (units, numbers)."""
        return F.linear(noted, self.in_proj.weight.float(), self.in_proj.bias.float())

    def forward(self, vectors: Tensor, sequence_index: Tensor | None = None) -> Tensor:
        """What to add to the logits, (units,), float32.

        Parameters
        ----------
        vectors : (units, width)
            Of all units of one sequence or, for kernels that pack, of several sequences.
        sequence_index : (units,), int32, optional
            The number of each unit's sequence, not decreasing, from 0 on.
        """
        if not len(vectors):
            return vectors.new_zeros(0)
        reversed_index = None if sequence_index is None else sequence_index[-1] - sequence_index.flip(0)
        residual = _read(self.forwards, vectors, sequence_index)
        residual = _read(self.backwards, residual.flip(0), reversed_index).flip(0)
        normed = self.norm(residual).float()
        return F.linear(normed, self.out_proj.weight.float())[:, 0]


def _read(layer: Block, residual: Tensor, sequence_index: Tensor | None) -> Tensor:
    """The output of a layer for vectors in the order in which it reads them: (units, width)."""
    state = initial_layer_state(layer.mixer.config, 1, residual.device, layer.norm.weight.dtype)
    parts, before = [], 0
    for start in range(0, len(residual), STEP_UNITS):
        stop = min(start + STEP_UNITS, len(residual))
        index = None
        if sequence_index is not None:
            index = sequence_index[None, start:stop] - before  # 0: the sequence that the state belongs to
            before = int(sequence_index[stop - 1])
        out, state = layer(residual[None, start:stop].float(), state, index, None)
        parts.append(out[0])
    return torch.cat(parts) if len(parts) > 1 else parts[0]
