"""A decoder with random weights that embeds chunks, to measure its time; its vectors mean nothing.

It reads as gte-Qwen2-1.5B-instruct and stella_en_1.5B_v5 in the paper do: chunks of 300 words, batches padded to
their longest sequence, the vector of the last token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

SHAPES = {
    "decoder-1.5b": {
        "hidden_size": 1536,
        "intermediate_size": 8960,
        "num_hidden_layers": 28,
        "num_attention_heads": 12,
        "num_key_value_heads": 2,
        "vocab_size": 151_646,
    },
    "decoder-tiny": {
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 512,
    },
}
"""Keys of transformers' Qwen2 configuration; the first shape is gte-Qwen2-1.5B-instruct's."""

BATCH_SIZE = 32


class DecoderEmbedder:
    """Embeds sequences of given lengths.

    Parameters
    ----------
    name : str
        A key of `SHAPES`.
    device : torch.device
    dtype : torch.dtype
    """

    def __init__(self, name: str, device: torch.device, dtype: torch.dtype) -> None:
        import torch
        from transformers import Qwen2Config, Qwen2Model

        config = Qwen2Config(**SHAPES[name], attn_implementation="sdpa", use_cache=False)
        with device:  # billions of random numbers are slow to draw on a CPU
            self._model: Any = Qwen2Model(config).to(dtype).eval()
        self._device = device
        self._generator = torch.Generator().manual_seed(0)

    def embed(self, lengths: Sequence[int]) -> NDArray[np.float32]:
        """Vectors of random sequences of these lengths in tokens: (sequences, width)."""
        import torch

        vectors = []
        for start in range(0, len(lengths), BATCH_SIZE):
            batch = torch.tensor(lengths[start : start + BATCH_SIZE])
            shape = (len(batch), int(batch.max()))
            ids = torch.randint(512, shape, generator=self._generator).to(self._device)
            mask = (torch.arange(shape[1]) < batch[:, None]).long().to(self._device)
            with torch.inference_mode():
                hidden = self._model(input_ids=ids, attention_mask=mask).last_hidden_state
            vectors.append(hidden[torch.arange(len(batch)), batch - 1].float())
        return torch.cat(vectors).cpu().numpy()
