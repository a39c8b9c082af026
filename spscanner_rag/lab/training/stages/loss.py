"""The losses of both stages: which sentences of a sequence answer its question; which passage of a column does."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from spscanner_rag.baselines.mamba_reranker import PairReader
from spscanner_rag.lab.training.data.columns import PassageDraw
from spscanner_rag.lab.training.data.examples import ExampleSource
from spscanner_rag.lab.training.data.stretches import Example
from spscanner_rag.lab.training.passes import passes, unit_states
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.mamba2.reader import TokenSequence

Column = Sequence[TokenSequence]
"""Pairs of one question, the right one first."""


class EvidenceObjective:
    """The relevance of sentences, learned from labels; ``shift`` is that of `loss_shift`."""

    def __init__(self, source: ExampleSource, recipe: Recipe, shift: float = 0.0) -> None:
        self._source, self._recipe, self._shift = source, recipe, shift

    def example(self, number: int, length: int) -> Example:
        """A question, a stretch of its document and its labels."""
        return self._source.example(number, length)

    def tokens(self, example: Example) -> int:
        """The number of tokens in the sequence."""
        return len(example.sequence.input_ids)

    def losses(self, model: ScannerModel, examples: Sequence[Example]) -> Iterator[Tensor]:
        """The parts of a step's loss, a pass each."""
        lengths = list(map(self.tokens, examples))
        for members in passes(lengths, self._recipe.tokens_per_pass, model.kernels.packs):
            yield self.loss(model, examples, members)

    def loss(self, model: ScannerModel, examples: Sequence[Example], members: Sequence[int]) -> Tensor:
        """Binary and ranking loss of some of the examples of a step, read in one pass."""
        recipe, device = self._recipe, model.device
        units = sum(len(example.relevant) for example in examples)
        weight = torch.tensor(recipe.positive_weight, device=device)
        loss = torch.zeros((), device=device)
        read = [examples[number] for number in members]
        ends = unit_states(model, [example.sequence for example in read], recipe.dtype)
        for example, states in zip(read, ends, strict=True):
            prior = example.sequence.prior
            logits = model.score(states, None if prior is None else torch.from_numpy(prior).to(device))
            relevant = torch.from_numpy(example.relevant.astype(np.float32)).to(device)  # (units,)
            shifted = logits + self._shift  # the ranking does not see the shift
            binary = F.binary_cross_entropy_with_logits(shifted, relevant, pos_weight=weight, reduction="sum")
            loss = loss + binary / units
            if (
                recipe.ranking_weight and example.relevant.any()
            ):  # without evidence there is no ranking to learn
                ranking = -(logits.log_softmax(0) * relevant).sum() / relevant.sum()
                loss = loss + recipe.ranking_weight * ranking / len(examples)
        return loss


class RerankerObjective:
    """Softmax cross-entropy over the column (Xu et al. 2024, "State Space Models are Strong Text Rerankers").

    L = -log(exp(s_0) / sum_i exp(s_i)), where s_0 is the logit of the passage with the answer and the others are
    those of the negatives; each logit is read from the end token of a pair.
    """

    def __init__(self, passages: PassageDraw, reader: PairReader, recipe: Recipe) -> None:
        self._passages, self._reader, self._recipe = passages, reader, recipe

    def example(self, number: int, length: int) -> Column:
        """Column ``number``, of pairs whose documents are cut after ``length`` tokens."""
        column, reader = self._passages.column(number), replace(self._reader, document_tokens=length)
        return [reader.sequence(column.question, passage) for passage in column.passages]

    def tokens(self, example: Column) -> int:
        """The number of tokens in all pairs."""
        return sum(len(pair.input_ids) for pair in example)

    def losses(self, model: ScannerModel, examples: Sequence[Column]) -> Iterator[Tensor]:
        """The parts of a step's loss; a column is not divided."""
        most = self._recipe.tokens_per_pass
        for members in passes(list(map(self.tokens, examples)), most, packs=True):
            pairs = [pair for number in members for pair in examples[number]]
            ends: dict[int, Tensor] = {}
            for together in passes([len(pair.input_ids) for pair in pairs], most, model.kernels.packs):
                states = unit_states(model, [pairs[number] for number in together], self._recipe.dtype)
                ends.update(zip(together, states, strict=True))
            logits = model.score(torch.cat([ends[number] for number in range(len(pairs))]), None)
            right = torch.zeros((), dtype=torch.int64, device=model.device)  # the first one
            columns = torch.split(logits, [len(examples[number]) for number in members])
            yield torch.stack([F.cross_entropy(column, right) for column in columns]).sum() / len(examples)
