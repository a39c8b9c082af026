"""A scan over the sentences of a whole text: one Mamba-2 layer, one step a sentence.

Where the token reader reads words, this reads scores: what an encoder and the words say
of each sentence. A layer of the same kind carries what came before from sentence to
sentence, in linear time.
"""

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from spscanner_rag.mamba2.model import Block, LayerState
from spscanner_rag.mamba2.sentence_scan_shape import SentenceScanShape
from spscanner_rag.system.forks import compute_in_forks


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
    >>> from spscanner_rag.mamba2.sentence_scan import SentenceScan
    >>> from spscanner_rag.mamba2.sentence_scan_shape import SentenceScanShape
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
