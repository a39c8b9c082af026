"""The sizes of a sentence scan, and what every one does."""

from dataclasses import dataclass, fields
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.mamba2.config import Mamba2Config

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


class ScansSentences(Protocol):
    """A loaded sentence scan, whatever computes it."""

    shape: SentenceScanShape

    def logits(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the logits of one text's sentences, (sentences,), float32.

        Parameters
        ----------
        features : array (sentences, features)
            Of all sentences of the text, in their order.
        """
        ...
