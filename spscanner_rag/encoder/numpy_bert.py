"""The forward pass of a BERT-like sentence encoder in numpy, without torch.

It computes what `encoder.bert` computes in float32. Linear layers get the tokens of all
windows in one row; attention is computed window by window, so that none is padded.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.encoder.bert_shape import (
    SCALE,
    WORD_EMBEDDINGS,
    BertShape,
    group_of,
)
from spscanner_rag.system.numpy_functions import gelu_in_place, softmax_in_place

Floats = NDArray[np.float32]
LookUp = Callable[[NDArray[np.int64]], Floats]
"""Returns the embeddings, (tokens, hidden_size), of token ids, (tokens,)."""


class NumpyBert:
    """An encoder's weights and its forward pass, in float32 on the CPU.

    Parameters
    ----------
    shape : BertShape
        The sizes.
    weights : mapping of str to array
        What `BertShape.tensors` lists, in float32.
    stored_words : callable, optional
        Looks up word embeddings, in place of those among the weights.
    """

    def __init__(
        self,
        shape: BertShape,
        weights: Mapping[str, Floats],
        stored_words: LookUp | None = None,
    ) -> None:
        self.shape = shape
        self._weights = dict(weights)
        self._stored_words = stored_words
        for layer in range(shape.num_hidden_layers):
            # one product for query, key and value
            name = f"encoder.layer.{layer}.attention.self."
            for kind in ("weight", "bias"):
                parts = [
                    self._weights.pop(f"{name}{part}.{kind}")
                    for part in ("query", "key", "value")
                ]
                self._weights[f"{name}all.{kind}"] = np.concatenate(parts)

    def states(
        self, windows: Sequence[Sequence[int]], second: Sequence[int] | None = None
    ) -> Floats:
        """Return the last state of every token: (tokens, hidden_size).

        Parameters
        ----------
        windows : sequence of token ids
            Windows with the special tokens, 1 to ``max_position_embeddings`` tokens
            each. Their states follow one another.
        second : sequence of int, optional
            The place in each window where the second of two texts begins.
        """
        lengths = [len(window) for window in windows]
        x = self._embedded(windows, lengths, second)  # (tokens, hidden_size)
        for layer in range(self.shape.num_hidden_layers):
            name = f"encoder.layer.{layer}."
            x += self._attention(name, x, lengths)
            self._norm_in_place(f"{name}attention.output.LayerNorm", x)
            inner = self._linear(f"{name}intermediate.dense", x)
            gelu_in_place(inner)
            x += self._linear(f"{name}output.dense", inner)
            self._norm_in_place(f"{name}output.LayerNorm", x)
        return x

    def _embedded(
        self,
        windows: Sequence[Sequence[int]],
        lengths: Sequence[int],
        second: Sequence[int] | None,
    ) -> Floats:
        """The sum of a token's three embeddings, (tokens, hidden_size)."""
        ids = np.fromiter(chain.from_iterable(windows), np.int64)
        # (tokens,)
        positions = np.concatenate([np.arange(length) for length in lengths])
        kinds = np.zeros(len(ids), np.int64)  # (tokens,): 1 in the second text
        if second is not None:
            kinds = (positions >= np.repeat(second, lengths)).astype(np.int64)
        x: Floats
        if self._stored_words is None:
            x = self._weights[WORD_EMBEDDINGS][ids]
        else:
            x = self._stored_words(ids)
        x += self._weights["embeddings.position_embeddings.weight"][positions]
        x += self._weights["embeddings.token_type_embeddings.weight"][kinds]
        self._norm_in_place("embeddings.LayerNorm", x)
        return x

    def _norm_in_place(self, name: str, x: Floats) -> None:
        """Normalize each row of (tokens, hidden_size)."""
        x -= x.mean(axis=1, keepdims=True)
        variances = np.einsum("ij,ij->i", x, x)[:, None] / x.shape[1]  # (tokens, 1)
        x /= np.sqrt(variances + np.float32(self.shape.layer_norm_eps))
        x *= self._weights[f"{name}.weight"]
        x += self._weights[f"{name}.bias"]

    def _linear(self, name: str, x: Floats) -> Floats:
        products: Floats = x @ self._weights[f"{name}.weight"].T
        products += self._weights[f"{name}.bias"]
        return products

    def _attention(self, name: str, x: Floats, lengths: Sequence[int]) -> Floats:
        heads = self.shape.num_attention_heads
        packed = self._linear(f"{name}attention.self.all", x)
        by_head = packed.reshape(len(x), 3, heads, -1)
        by_head[:, 0] *= 1 / math.sqrt(by_head.shape[-1])
        mixed = np.empty((len(x), heads, by_head.shape[-1]), np.float32)
        start = 0
        for length in lengths:
            stop = start + length
            # each (heads, length, headdim)
            q, k, v = by_head[start:stop].transpose(1, 2, 0, 3)
            weights = q @ k.transpose(0, 2, 1)  # (heads, length, length)
            softmax_in_place(weights)
            mixed[start:stop] = (weights @ v).transpose(1, 0, 2)
            start = stop
        return self._linear(f"{name}attention.output.dense", mixed.reshape(len(x), -1))


def restored_arrays(weights: Mapping[str, NDArray[Any]]) -> dict[str, Floats]:
    """Return weights in float32.

    Those that `checkpoint.save` has quantized are restored.
    """
    restored = {}
    for name, weight in weights.items():
        if name.endswith(SCALE):
            continue
        floats = weight.astype(np.float32)
        if weight.dtype == np.int8:
            groups = floats.reshape(len(weight), -1, group_of(weight.shape[1]))
            groups *= weights[f"{name}{SCALE}"].astype(np.float32)[..., None]
        restored[name] = floats
    return restored
