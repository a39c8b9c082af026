"""A scan over the sentences of a whole text in numpy, without torch.

It computes what `mamba2.sentence_scan.SentenceScan` computes.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.mamba2.numpy_layer import (
    NumpyLayer,
    NumpyLayerState,
    layer_tensors,
)
from spscanner_rag.mamba2.sentence_scan_shape import SentenceScanShape
from spscanner_rag.system.numpy_functions import gelu_in_place

Floats = NDArray[np.float32]


def scan_tensors(shape: SentenceScanShape) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor of a sentence scan, by name."""
    shapes: dict[str, tuple[int, ...]] = {
        "linear.weight": (1, shape.features),
        "linear.bias": (1,),
        "input.weight": (shape.width, shape.features),
        "input.bias": (shape.width,),
        "head.weight": (1, shape.width),
    }
    for name, of_layer in layer_tensors(shape.layer).items():
        shapes[f"block.{name}"] = of_layer
    return shapes


class NumpySentenceScan:
    """Gives every sentence of a text a logit, from features of all of them.

    Parameters
    ----------
    shape : SentenceScanShape
        Its sizes.
    weights : mapping of str to array
        What `scan_tensors` lists, in float32.
    """

    def __init__(self, shape: SentenceScanShape, weights: Mapping[str, Floats]) -> None:
        self.shape = shape
        self._weights = dict(weights)
        of_layer = {
            name: weights[f"block.{name}"] for name in layer_tensors(shape.layer)
        }
        self._layer = NumpyLayer(shape.layer, of_layer)

    def logits(self, features: Floats) -> Floats:
        """Return the logits of one text's sentences, (sentences,), float32.

        Parameters
        ----------
        features : array (sentences, features)
            Of all sentences of the text, in their order.
        """
        if not len(features):
            return np.zeros(0, np.float32)
        weights = self._weights
        hidden = features @ weights["input.weight"].T + weights["input.bias"]
        gelu_in_place(hidden)  # (sentences, width)
        hidden, _ = self._layer(hidden, NumpyLayerState.initial(self.shape.layer))
        logits = features @ weights["linear.weight"][0] + weights["linear.bias"]
        logits += hidden @ weights["head.weight"][0]
        return np.asarray(logits, np.float32)
