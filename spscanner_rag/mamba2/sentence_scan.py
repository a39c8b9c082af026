"""A scan over the sentences of a whole text: one Mamba-2 layer, one step a sentence.

Where the token reader reads words, this reads scores: what an encoder and the words say
of each sentence. A layer of the same kind carries what came before from sentence to
sentence, in linear time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.model import Block, LayerState
from spscanner_rag.system.forks import compute_in_forks

_LARGEST_SIZE = 4096


@dataclass(frozen=True, slots=True)
class SentenceScanShape:
    """The sizes of a sentence scan: ``config.json``'s "spscanner.sentence_scan".

    Parameters
    ----------
    features : int
        Numbers that are read of each sentence.
    width : int, default 96
        Width of the residual stream.
    state : int, default 16
        Size of the state of one channel.
    head_width : int, default 24
        Channels of a head.

    Raises
    ------
    ValueError
        For a size that is not a whole number from 1 to 4,096, or heads that do not
        fill the layer.
    """

    features: int
    width: int = 96
    state: int = 16
    head_width: int = 24

    def __post_init__(self) -> None:
        for size in fields(self):
            value = getattr(self, size.name)
            if type(value) is not int or not 1 <= value <= _LARGEST_SIZE:
                raise ValueError(
                    f"spscanner.sentence_scan.{size.name} is {value!r:.60}; expected a"
                    f" whole number from 1 to {_LARGEST_SIZE:,}"
                )
        if self.width % self.head_width:
            raise ValueError(
                f"spscanner.sentence_scan.head_width is {self.head_width}; expected a"
                f" divisor of the width {self.width}"
            )

    @property
    def layer(self) -> Mamba2Config:
        """The configuration of its layer, which has no vocabulary."""
        return Mamba2Config(
            d_model=self.width,
            n_layer=1,
            vocab_size=1,
            d_state=self.state,
            expand=1,
            headdim=self.head_width,
        )


class SentenceScan(nn.Module):
    """Gives every sentence of a text a logit, from features of all of them.

    The logit is a linear function of the sentence's features, plus one of the hidden
    state after the sentence.

    Parameters
    ----------
    shape : SentenceScanShape
        Its sizes.
    dropout : float, default 0
        Share of the hidden numbers that training leaves out.

    Examples
    --------
    >>> import numpy as np
    >>> from spscanner_rag.mamba2.sentence_scan import SentenceScan, SentenceScanShape
    >>> scan = SentenceScan(SentenceScanShape(features=5))
    >>> scan.logits(np.zeros((3, 5), np.float32)).shape
    (3,)
    """

    def __init__(self, shape: SentenceScanShape, dropout: float = 0.0) -> None:
        super().__init__()
        self.shape = shape
        self.dropout = dropout
        self.linear = nn.Linear(shape.features, 1)
        self.input = nn.Linear(shape.features, shape.width)
        self.block = Block(shape.layer)
        self.head = nn.Linear(shape.width, 1, bias=False)
        nn.init.zeros_(self.head.weight)

    def forward(self, features: Tensor) -> Tensor:
        """Return logits, (batch, sentences), from (batch, sentences, features)."""
        layer = self.shape.layer
        batch = features.shape[0]
        state = LayerState(
            features.new_zeros(batch, layer.d_conv - 1, layer.conv_dim),
            features.new_zeros(batch, layer.nheads, layer.headdim, layer.d_state),
        )
        hidden = F.gelu(self.input(features))  # (batch, sentences, width)
        hidden = F.dropout(hidden, self.dropout, self.training)
        hidden, _ = self.block(hidden, state, None, None)
        hidden = F.dropout(hidden, self.dropout, self.training)
        logits: Tensor = self.linear(features) + self.head(hidden)
        return logits[..., 0]

    @torch.inference_mode()
    def logits(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the logits of one text's sentences, (sentences,), float32.

        Parameters
        ----------
        features : array (sentences, features)
            Of all sentences of the text, in their order.
        """
        if not len(features):
            return np.zeros(0, np.float32)
        compute_in_forks()
        rows = torch.from_numpy(features)[None]
        logits: NDArray[np.float32] = self(rows)[0].float().numpy()
        return logits

    @torch.no_grad()
    def rescale(self, factor: float, shift: float) -> None:
        """Make every logit ``factor`` times as large, plus ``shift``."""
        self.linear.weight.mul_(factor)
        self.linear.bias.mul_(factor).add_(shift)
        self.head.weight.mul_(factor)

    @classmethod
    def of(
        cls, shape: SentenceScanShape, weights: Mapping[str, Tensor]
    ) -> "SentenceScan":
        """Return a scan with these weights, by their names."""
        scan = cls(shape)
        scan.load_state_dict(dict(weights))
        return scan.eval()
