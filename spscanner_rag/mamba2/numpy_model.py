"""The scanner's network in numpy's float32, without torch.

It computes what `mamba2.model.ScannerModel` computes with plain torch.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.lexical_sizes import (
    MATCH_CLASSES,
    SOFT_FEATURES,
    SOFT_SCORES,
    SURROUNDINGS,
)
from spscanner_rag.mamba2.numpy_layer import (
    NumpyLayer,
    NumpyLayerState,
    layer_tensors,
    rms_normed,
)
from spscanner_rag.mamba2.token_sequences import AfterStep, TokenSequence

Floats = NDArray[np.float32]

_EMBEDDING: Final = "backbone.embedding.weight"


class Cpu(NamedTuple):
    """The device of a model in numpy, with the ``type`` of a ``torch.device``."""

    type: str = "cpu"

    def __str__(self) -> str:
        return self.type


class LexicalParts(NamedTuple):
    """Which optional parts of `mamba2.model.ScannerModel` a model has."""

    match: bool = False
    prior: bool = False
    surroundings: bool = False
    soft: bool = False


def model_tensors(
    config: Mamba2Config, parts: LexicalParts
) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor of a model, by its name in the checkpoint's file."""
    width = config.d_model
    shapes: dict[str, tuple[int, ...]] = {
        _EMBEDDING: (config.padded_vocab_size, width),
        "backbone.norm_f.weight": (width,),
        "binary_head.weight": (1, width),
        "binary_head.bias": (1,),
    }
    for number in range(config.n_layer):
        for name, shape in layer_tensors(config).items():
            shapes[f"backbone.layers.{number}.{name}"] = shape
    if parts.match:
        shapes["match_embedding.weight"] = (MATCH_CLASSES, width)
    if parts.prior:
        shapes["lexical_prior.weight"] = (1, 1)
    if parts.surroundings:
        shapes["surroundings.weight"] = (SURROUNDINGS, width)
        shapes["surroundings.bias"] = (SURROUNDINGS,)
    if parts.soft:
        shapes["soft_match.weight"] = (width, SOFT_FEATURES)
        shapes["soft_prior.weight"] = (SOFT_SCORES, width)
        shapes["soft_prior.bias"] = (SOFT_SCORES,)
    return shapes


class NumpyModel:
    """Maps token sequences to logits, one after the other, in segments.

    Parameters
    ----------
    config : Mamba2Config
        The sizes.
    weights : mapping of str to array
        What `model_tensors` lists, in float32.
    """

    backend = "numpy"
    device = Cpu()
    dtype = "float32"
    most_tokens = sys.maxsize

    def __init__(self, config: Mamba2Config, weights: Mapping[str, Floats]) -> None:
        self.config = config
        self._weights = dict(weights)
        self._layers = []
        for number in range(config.n_layer):
            name = f"backbone.layers.{number}."
            of_layer = {
                part: weights[f"{name}{part}"] for part in layer_tensors(config)
            }
            self._layers.append(NumpyLayer(config, of_layer))

    @property
    def n_parameters(self) -> int:
        """How many numbers were trained."""
        return sum(weight.size for weight in self._weights.values())

    @property
    def n_embedded(self) -> int:
        """How many of them are the embedding's."""
        return self._weights[_EMBEDDING].size

    def read_logits(
        self,
        sequences: Sequence[TokenSequence],
        segment_tokens: int,
        after_step: AfterStep = None,
    ) -> list[Floats]:
        """Return the logits of each sequence, as `TokenReader` says."""
        return [
            self._read_sequence(sequence, segment_tokens, after_step)
            for sequence in sequences
        ]

    def _read_sequence(
        self, sequence: TokenSequence, segment_tokens: int, after_step: AfterStep
    ) -> Floats:
        tokens = len(sequence.input_ids)
        positions = sequence.positions
        hidden = np.empty((len(positions), self.config.d_model), np.float32)
        states = [NumpyLayerState.initial(self.config) for _ in self._layers]
        for start in range(0, tokens, segment_tokens):
            stop = min(start + segment_tokens, tokens)
            x = self._embedded(sequence, start, stop)  # (tokens, d_model)
            for number, layer in enumerate(self._layers):
                x, states[number] = layer(x, states[number])
            ends_inside = (positions >= start) & (positions < stop)
            hidden[ends_inside] = x[positions[ends_inside] - start]
            if after_step is not None:
                after_step(stop - start)
        hidden = rms_normed(hidden, self.config.norm_epsilon)
        hidden *= self._weights["backbone.norm_f.weight"]
        return self._score(hidden, sequence.prior)

    def _embedded(self, sequence: TokenSequence, start: int, stop: int) -> Floats:
        """Token embeddings, plus the lexical channel's: (tokens, d_model)."""
        part = slice(start, stop)
        embedded: Floats = self._weights[_EMBEDDING][sequence.input_ids[part]]
        if sequence.match_classes is not None:
            classes = sequence.match_classes[part]
            embedded += self._weights["match_embedding.weight"][classes]
        if sequence.match_features is not None:
            features = sequence.match_features[part]  # (tokens, SOFT_FEATURES)
            embedded += features @ self._weights["soft_match.weight"].T
        return embedded

    def _score(self, hidden: Floats, prior: Floats | None) -> Floats:
        """Logits, (units,), from states at the units' last tokens and their scores."""
        weights = self._weights
        logits = hidden @ weights["binary_head.weight"][0] + weights["binary_head.bias"]
        if prior is None:
            return np.asarray(logits, np.float32)
        logits += weights["lexical_prior.weight"][0, 0] * prior[:, 0]
        first = 1
        for name in ("surroundings", "soft_prior"):
            if f"{name}.weight" not in weights:
                continue
            # (units, scores): how much each score counts depends on the hidden state
            factors = hidden @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
            last = first + factors.shape[1]
            logits += np.einsum("ij,ij->i", factors, prior[:, first:last])
            first = last
        return np.asarray(logits, np.float32)
