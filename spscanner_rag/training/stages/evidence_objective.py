"""The loss of the evidence stage: which sentences of a sequence answer its question."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.training.data.examples import Example, ExampleSource
from spscanner_rag.training.passes import Pass, hidden_states
from spscanner_rag.training.recipe import PositiveWeight, Recipe


class EvidenceObjective:
    """The relevance of sentences, learnt from labels and, if the recipe has one, from a teacher.

    The teacher's scores are learnt by a second head, which reads hidden states of width ``d_model``. ``shift`` is
    added to the logits in the binary loss; see `loss_shift`.
    """

    def __init__(self, source: ExampleSource, recipe: Recipe, d_model: int, shift: float = 0.0) -> None:
        self._source, self._recipe, self._shift = source, recipe, shift
        self._teacher_head = nn.Linear(d_model, 1) if recipe.teacher and recipe.teacher_weight else None
        self.extra = self._teacher_head or nn.Module()
        if self._teacher_head is not None:
            nn.init.zeros_(self._teacher_head.weight)

    def example(self, number: int, length: int) -> Example:
        """A question, a stretch of its document and its labels."""
        return self._source.example(number, length)

    def tokens(self, example: Example) -> int:
        """The number of tokens in the sequence."""
        return len(example.sequence.input_ids)

    def loss(self, model: ScannerModel, examples: Sequence[Example], read: Pass) -> Tensor:
        """Binary and ranking loss on labels, and the loss against a teacher's scores."""
        sequences = [examples[number].sequence for number in read.members]
        ids = [sequence.input_ids for sequence in sequences]
        classes = [sequence.match_classes for sequence in sequences if sequence.match_classes is not None]
        features = [sequence.match_features for sequence in sequences if sequence.match_features is not None]
        hidden = hidden_states(model, ids, classes or None, self._recipe.dtype, read, features or None)
        labels = np.concatenate([example.relevant for example in examples])
        weight = torch.tensor(weight_of_positives(self._recipe.positive_weight, labels), device=model.device)
        loss = torch.zeros((), device=model.device)
        for row, number in zip(hidden[: len(ids)], read.members, strict=True):
            example = examples[number]
            ends = row[torch.from_numpy(example.sequence.positions).to(model.device)].float()
            loss = loss + self._example_loss(model, ends, example, weight, len(labels), len(examples))
        return loss

    def _example_loss(
        self, model: ScannerModel, ends: Tensor, example: Example, weight: Tensor, units: int, sequences: int
    ) -> Tensor:
        """Loss of one example from the hidden states at its unit ends, (its units, d_model).

        ``weight`` is that of positives, scalar; ``units`` and ``sequences`` are the numbers in the whole step.
        """
        recipe, device = self._recipe, model.device
        prior = example.sequence.prior
        logits = model.score(ends, None if prior is None else torch.from_numpy(prior).to(device))  # (units,)
        relevant = torch.from_numpy(example.relevant.astype(np.float32)).to(device)  # (units,)
        shifted = logits + self._shift  # neither the ranking nor a teacher sees the shift
        binary = F.binary_cross_entropy_with_logits(shifted, relevant, pos_weight=weight, reduction="sum")
        loss = binary / units
        if recipe.ranking_weight and example.relevant.any():  # without evidence there is no ranking to learn
            ranking = -(logits.log_softmax(0) * relevant).sum() / relevant.sum()
            loss = loss + recipe.ranking_weight * ranking / sequences
        if example.teacher is None:
            return loss
        targets = torch.from_numpy(example.teacher).to(device)  # (units,)
        if self._teacher_head is not None:
            error = F.mse_loss(self._teacher_head(ends)[:, 0], targets, reduction="sum")
            loss = loss + recipe.teacher_weight * error / units
        if recipe.distillation_weight:
            divergence = listwise_divergence(logits, targets, recipe.distillation_temperature)
            loss = loss + recipe.distillation_weight * divergence / sequences
        return loss


def weight_of_positives(positive_weight: PositiveWeight, relevant: NDArray[np.bool_]) -> float:
    """The weight of a relevant sentence in the binary loss; irrelevant ones have 1.

    "balanced", as in the official train.py, is n-/n+: the number of irrelevant sentences in the step's batch over
    the number of relevant ones, so that both kinds contribute equally; 1 without relevant ones. ``relevant``
    has all labels of the batch, (sentences,).
    """
    if positive_weight != "balanced":
        return positive_weight
    positives = int(relevant.sum())
    return (len(relevant) - positives) / positives if positives else 1.0


def listwise_divergence(logits: Tensor, targets: Tensor, temperature: float) -> Tensor:
    """Kullback-Leibler divergence of logits from a teacher's scores, as distributions over units: scalar.

    ``logits`` and ``targets`` are (units,). The divergence is 0 where ``logits`` and ``targets / temperature``
    differ by a constant; the lower the temperature, the more the teacher's best units dominate.
    """
    wanted = (targets / temperature).log_softmax(0)
    return F.kl_div(logits.log_softmax(0), wanted, reduction="sum", log_target=True)
