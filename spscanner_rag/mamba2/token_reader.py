"""What reads token sequences: a model in torch, or in numpy."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.token_sequences import AfterStep, TokenSequence


class TokenReader(Protocol):
    """A loaded model, whatever computes it."""

    @property
    def config(self) -> Mamba2Config:
        """The sizes of the model."""
        ...

    @property
    def device(self) -> Any:  # noqa: ANN401 - a torch.device, or a `Cpu`
        """The device, with a ``type`` of "cpu", "cuda" or "mps"."""
        ...

    @property
    def dtype(self) -> Any:  # noqa: ANN401 - a torch.dtype, or "float32"
        """What the model computes in: its name ends in "float32" or "bfloat16"."""
        ...

    @property
    def backend(self) -> str:
        """What computes the layers: a name of `Scanner.from_pretrained`'s."""
        ...

    @property
    def most_tokens(self) -> int:
        """Maximum number of tokens in one forward pass."""
        ...

    @property
    def n_parameters(self) -> int:
        """How many numbers were trained."""
        ...

    @property
    def n_embedded(self) -> int:
        """How many of them are the embedding's."""
        ...

    def read_logits(
        self,
        sequences: Sequence[TokenSequence],
        segment_tokens: int,
        after_step: AfterStep = None,
    ) -> list[NDArray[np.float32]]:
        """Return the logits at the positions of each sequence: (units,), float32.

        Parameters
        ----------
        sequences : sequence of TokenSequence
            The results have the same order.
        segment_tokens : int
            Tokens per forward pass, at least 1.
        after_step : callable, optional
            Called with the tokens read in each step, without padding.
        """
        ...
