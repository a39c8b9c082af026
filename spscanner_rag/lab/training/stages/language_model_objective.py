"""The language-model objective: the loss of the next token, in training and on held-out text."""

import math
from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from spscanner_rag.lab.training.data.token_cache import TokenCache
from spscanner_rag.lab.training.passes import Pass, hidden_states, passes
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.lab.training.stages.next_token_loss import next_token_loss
from spscanner_rag.mamba2.model import SOFT_FEATURES, ScannerModel
from spscanner_rag.scan.devices import DTYPES

ALL_SOURCES = "all"
"""The name of the mean over the tokens of all sources."""


class LanguageModelObjective:
    """Mean cross entropy of the next token over the sequences of a step."""

    def __init__(self, tokens: TokenCache, recipe: Recipe) -> None:
        self._tokens, self._recipe = tokens, recipe
        self.extra = nn.Module()  # empty: only the model is trained

    def example(self, number: int, length: int) -> NDArray[np.int64]:
        """Token ids, one more than the model reads, because the last one is only predicted."""
        return self._tokens.sequence(number, length + 1, self._recipe.seed)

    def tokens(self, example: NDArray[np.int64]) -> int:
        """The number of token ids without the last."""
        return len(example) - 1

    def loss(self, model: ScannerModel, examples: Sequence[NDArray[np.int64]], read: Pass) -> Tensor:
        """The mean loss of a token, in nats."""
        summed = summed_loss(model, [examples[number] for number in read.members], self._recipe.dtype, read)
        return summed / sum(map(self.tokens, examples))


def summed_loss(
    model: ScannerModel, sequences: Sequence[NDArray[np.int64]], dtype: str, together: Pass
) -> Tensor:
    """Cross entropy of the tokens of sequences, each given those before it: scalar, in nats.

    Each of ``sequences`` is (tokens,), at least two; the first token is not predicted.
    """
    read = [sequence[:-1] for sequence in sequences]
    # no question, so no token of the text occurs in it
    classes = None if model.match_embedding is None else [np.zeros_like(row) for row in read]
    features = (
        None
        if model.soft_match is None
        else [np.zeros((len(row), SOFT_FEATURES), np.float32) for row in read]
    )
    rows = torch.cat(hidden_states(model, read, classes, dtype, together, features))  # (tokens, d_model)
    targets = torch.from_numpy(np.concatenate([sequence[1:] for sequence in sequences])).to(model.device)
    embedding = model.backbone.embedding.weight[: model.config.vocab_size]  # without the rows of padding
    return next_token_loss(rows.float(), embedding, targets, DTYPES[dtype])


@torch.no_grad()
def held_out_loss(
    model: ScannerModel, caches: Iterable[TokenCache], recipe: Recipe
) -> dict[str, dict[str, float]]:
    """Mean loss of a token as ``nats`` and ``perplexity``, by file, and over all files under "all"."""
    sums: dict[str, list[float]] = {}
    length = max(recipe.sequence_tokens) + 1
    for source, sequence in chain.from_iterable(c.spread(length, recipe.validation_tokens) for c in caches):
        if len(sequence) < 2:
            continue
        alone = passes([len(sequence) - 1], recipe.tokens_per_pass, streams=False)[0]
        loss = summed_loss(model, [sequence], recipe.dtype, alone).item()
        for name in (source, ALL_SOURCES):
            entry = sums.setdefault(name, [0.0, 0.0])
            entry[0] += loss
            entry[1] += len(sequence) - 1
    order = [*sorted(sums.keys() - {ALL_SOURCES}), ALL_SOURCES]
    means = {name: sums[name][0] / sums[name][1] for name in order}
    # exp(710) overflows
    return {name: {"nats": mean, "perplexity": math.exp(min(mean, 700.0))} for name, mean in means.items()}
