"""The language-model stage: the next token of plain text, from the tied embedding."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.scan.devices import DTYPES
from spscanner_rag.training.data.token_cache import TokenCache
from spscanner_rag.training.passes import Pass, hidden_states, passes
from spscanner_rag.training.recipe import Recipe
from spscanner_rag.training.stages.next_token_loss import next_token_loss


class LanguageModelObjective:
    """Mean cross entropy of the next token over the sequences of a step.

    Parameters
    ----------
    tokens : TokenCache
    recipe : Recipe
    """

    def __init__(self, tokens: TokenCache, recipe: Recipe) -> None:
        self._tokens, self._recipe = tokens, recipe

    @property
    def extra(self) -> nn.Module:
        """Nothing is trained beside the model."""
        return nn.Module()

    def draw(self, step: int, length: int) -> list[NDArray[np.int64]]:
        """The sequences of a step."""
        count, seed = self._recipe.sequences_per_step, self._recipe.seed
        numbers = range(step * count, (step + 1) * count)
        # one token more than is read: the last one is only predicted
        return [self._tokens.sequence(number, length + 1, seed) for number in numbers]

    def batch(self, drawn: list[NDArray[np.int64]]) -> "LanguageModelBatch":
        """Sequences with what their loss needs."""
        return LanguageModelBatch(drawn, self._recipe.dtype)


@dataclass(frozen=True, slots=True)
class LanguageModelBatch:
    """Sequences of token ids."""

    sequences: Sequence[NDArray[np.int64]]
    dtype: str

    @property
    def lengths(self) -> list[int]:
        """Tokens read of each sequence."""
        return [len(sequence) - 1 for sequence in self.sequences]

    def loss(self, model: ScannerModel, read: Pass) -> Tensor:
        """A pass's share of the mean loss of a token, in nats."""
        summed = summed_loss(model, [self.sequences[number] for number in read.members], self.dtype, read)
        return summed / sum(self.lengths)


def summed_loss(
    model: ScannerModel, sequences: Sequence[NDArray[np.int64]], dtype: str, together: Pass
) -> Tensor:
    """Cross entropy of the tokens of sequences, each given those before it: scalar, in nats.

    Parameters
    ----------
    model : ScannerModel
    sequences : sequence of (tokens,) arrays
        Of at least two tokens; the first of each is not predicted.
    dtype : "bfloat16" or "float32"
    together : Pass
        How they are read.
    """
    read = [sequence[:-1] for sequence in sequences]
    # no question, so no token of the text occurs in it
    classes = None if model.match_embedding is None else [np.zeros_like(row) for row in read]
    hidden = hidden_states(model, read, classes, dtype, together)  # (rows, width, d_model)
    found = zip(hidden[: len(read)], read, strict=True)
    rows = torch.cat([row[: len(ids)] for row, ids in found])  # (tokens, d_model)
    targets = torch.from_numpy(np.concatenate([sequence[1:] for sequence in sequences])).to(model.device)
    embedding = model.backbone.embedding.weight[
        : model.config.vocab_size
    ]  # without rows that stand for nothing
    return next_token_loss(rows.float(), embedding, targets, DTYPES[dtype])


@torch.no_grad()
def held_out_loss(
    model: ScannerModel, caches: Iterable[TokenCache], recipe: Recipe
) -> dict[str, dict[str, float]]:
    """Mean loss of a token by file, and over all of them under "all".

    Returns
    -------
    dict
        For each: ``nats`` and ``perplexity``.
    """
    sums: dict[str, list[float]] = {}
    length = max(recipe.sequence_tokens) + 1
    found = chain.from_iterable(tokens.spread(length, recipe.validation_tokens) for tokens in caches)
    for source, sequence in found:
        if len(sequence) < 2:
            continue
        alone = passes([len(sequence) - 1], length, recipe.tokens_per_pass, compiled=False)[0]
        loss = summed_loss(model, [sequence], recipe.dtype, alone).item()
        for name in (source, "all"):
            entry = sums.setdefault(name, [0.0, 0.0])
            entry[0] += loss
            entry[1] += len(sequence) - 1
    order = [*sorted(sums.keys() - {"all"}), "all"]
    return {name: _measures(*sums[name]) for name in order}


def _measures(loss: float, tokens: float) -> dict[str, float]:
    nats = loss / tokens
    return {"nats": nats, "perplexity": math.exp(min(nats, 700.0))}
