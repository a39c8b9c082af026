"""The loss of the evidence stage: which sentences of a sequence answer its question."""

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from spscanner_rag.lab.training.data.stretches import Example
from spscanner_rag.lab.training.passes import passes, unit_states
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.mamba2.model import ScannerModel


class Examples(Protocol):
    """An endless, repeatable supply of examples."""

    def example(self, number: int, length: int) -> Example:
        """Example ``number``, about ``length`` tokens long; the same in every run and every process."""
        ...


class EvidenceObjective:
    """The relevance of sentences, learned from labels; ``shift`` is that of `loss_shift`."""

    def __init__(self, source: Examples, recipe: Recipe, shift: float = 0.0) -> None:
        self._source, self._recipe, self._shift = source, recipe, shift

    def example(self, number: int, length: int) -> Example:
        """A question, a stretch of its document and its labels, or a group of stretches."""
        return self._source.example(number, length)

    def tokens(self, example: Example) -> int:
        """The number of tokens in the sequence, or in all sequences of a group."""
        return sum(len(stretch.sequence.input_ids) for stretch in example.stretches)

    def losses(self, model: ScannerModel, examples: Sequence[Example]) -> Iterator[Tensor]:
        """The parts of a step's loss, a pass each."""
        lengths = list(map(self.tokens, examples))
        for members in passes(lengths, self._recipe.tokens_per_pass, model.kernels.packs):
            yield self.loss(model, examples, members)

    def loss(self, model: ScannerModel, examples: Sequence[Example], members: Sequence[int]) -> Tensor:
        """Binary and ranking loss of some of the examples of a step, read in one pass."""
        units = sum(len(stretch.relevant) for example in examples for stretch in example.stretches)
        read = [examples[number] for number in members]
        ends = self._unit_ends(model, read)
        loss = torch.zeros((), device=model.device)
        for example in read:
            own = [next(ends) for _ in example.stretches]
            loss = loss + self._example_loss(model, own, example, units, len(examples))
        return loss

    def _unit_ends(self, model: ScannerModel, read: Sequence[Example]) -> Iterator[Tensor]:
        """Hidden states at the unit ends of each sequence of the examples, in order: (units, d_model)."""
        sequences = [stretch.sequence for example in read for stretch in example.stretches]
        together = [list(range(len(sequences)))]
        if not model.kernels.packs and len(sequences) > len(read):
            # the sequences of a group have lengths of their own
            lengths = [len(sequence.input_ids) for sequence in sequences]
            together = passes(lengths, self._recipe.tokens_per_pass, packs=False)
        found: dict[int, Tensor] = {}
        for numbers in together:
            states = unit_states(model, [sequences[number] for number in numbers], self._recipe.dtype)
            found.update(zip(numbers, states, strict=True))
        return (found[number] for number in range(len(sequences)))

    def _example_loss(
        self,
        model: ScannerModel,
        ends: Sequence[Tensor],
        example: Example,
        units: int,
        sequences: int,
    ) -> Tensor:
        """Loss of an example from hidden states at the unit ends of its sequences, (units, d_model) each.

        ``units`` and ``sequences`` are the numbers in the whole step, where a group counts as one sequence.
        """
        recipe, device = self._recipe, model.device
        priors = (stretch.sequence.prior for stretch in example.stretches)
        logits = torch.cat(  # (units of all sequences,)
            [
                model.score(states, None if prior is None else torch.from_numpy(prior).to(device))
                for states, prior in zip(ends, priors, strict=True)
            ]
        )
        labels = np.concatenate([stretch.relevant for stretch in example.stretches])
        relevant = torch.from_numpy(labels.astype(np.float32)).to(device)
        weight = torch.tensor(recipe.positive_weight, device=device)
        shifted = logits + self._shift  # the ranking does not see the shift
        binary = F.binary_cross_entropy_with_logits(shifted, relevant, pos_weight=weight, reduction="sum")
        loss = binary / units
        if recipe.ranking_weight and labels.any():  # without evidence there is no ranking to learn
            ranking = -(logits.log_softmax(0) * relevant).sum() / relevant.sum()
            loss = loss + recipe.ranking_weight * ranking / sequences
        return loss


class RerankerObjective(EvidenceObjective):
    """Softmax cross-entropy over the column (Xu et al. 2024, "State Space Models are Strong Text Rerankers").

    L = -log(exp(s_0) / sum_i exp(s_i)), where s_0 is the logit of the passage with the answer and the others are
    those of the negatives; each logit is read from the end token of a pair.
    """

    def _example_loss(
        self,
        model: ScannerModel,
        ends: Sequence[Tensor],
        example: Example,
        units: int,
        sequences: int,
    ) -> Tensor:
        """Loss of one column from the hidden states of its end tokens, (1, d_model) each."""
        logits = model.score(torch.cat(list(ends)), None)  # (column,)
        right = torch.zeros((), dtype=torch.int64, device=logits.device)  # the first one
        return F.cross_entropy(logits, right) / sequences
