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
    """Relevance of sentences, from labels and, where there is one, from a teacher.

    Parameters
    ----------
    source, recipe
    d_model : int
        Width of the model, for the second head that learns the teacher's scores.
    shift : float, default 0.0
        Added to the logits in the binary loss; see `loss_shift`.
    """

    def __init__(self, source: ExampleSource, recipe: Recipe, d_model: int, shift: float = 0.0) -> None:
        self._source, self._recipe, self._shift = source, recipe, shift
        self._teacher_head = nn.Linear(d_model, 1) if recipe.teacher and recipe.teacher_weight else None
        if self._teacher_head is not None:
            nn.init.zeros_(self._teacher_head.weight)

    @property
    def extra(self) -> nn.Module:
        """The teacher's head, if there is a teacher."""
        return nn.Module() if self._teacher_head is None else self._teacher_head

    def example(self, number: int, length: int) -> Example:
        """A question, a stretch of its document and its labels."""
        return self._source.example(number, length)

    def tokens(self, example: Example) -> int:
        """Tokens of the sequence."""
        return len(example.sequence.input_ids)

    def loss(self, model: ScannerModel, examples: Sequence[Example], read: Pass) -> Tensor:
        """Binary and ranking loss on labels, and what a teacher adds."""
        sequences = [examples[number].sequence for number in read.members]
        ids = [sequence.input_ids for sequence in sequences]
        classes = [sequence.match_classes for sequence in sequences if sequence.match_classes is not None]
        hidden = hidden_states(model, ids, classes or None, self._recipe.dtype, read)
        loss = torch.zeros((), device=model.device)
        for row, number in zip(hidden[: len(ids)], read.members, strict=True):
            ends = row[torch.from_numpy(examples[number].sequence.positions).to(model.device)]
            loss = loss + self._example_loss(model, ends.float(), examples[number], examples)
        return loss

    def _example_loss(
        self, model: ScannerModel, ends: Tensor, example: Example, batch: Sequence[Example]
    ) -> Tensor:
        """Loss of one example of a batch from the hidden states at its unit ends, (units, d_model)."""
        recipe, device, sequences = self._recipe, model.device, len(batch)
        labels = np.concatenate([other.relevant for other in batch])
        prior = example.sequence.prior
        logits = model.score(ends, None if prior is None else torch.from_numpy(prior).to(device))  # (units,)
        relevant = torch.from_numpy(example.relevant.astype(np.float32)).to(device)  # (units,)
        weight = torch.tensor(weight_of_positives(recipe.positive_weight, labels), device=device)
        shifted = logits + self._shift  # neither the ranking nor a teacher sees the shift
        binary = F.binary_cross_entropy_with_logits(shifted, relevant, pos_weight=weight, reduction="sum")
        loss = binary / len(labels)
        if recipe.ranking_weight and example.relevant.any():  # without evidence there is no order to learn
            ranking = -(logits.log_softmax(0) * relevant).sum() / relevant.sum()
            loss = loss + recipe.ranking_weight * ranking / sequences
        if example.teacher is None:
            return loss
        targets = torch.from_numpy(example.teacher).to(device)  # (units,)
        if self._teacher_head is not None:
            error = F.mse_loss(self._teacher_head(ends)[:, 0], targets, reduction="sum")
            loss = loss + recipe.teacher_weight * error / len(labels)
        if recipe.distillation_weight:
            divergence = listwise_divergence(logits, targets, recipe.distillation_temperature)
            loss = loss + recipe.distillation_weight * divergence / sequences
        return loss


def weight_of_positives(positive_weight: PositiveWeight, relevant: NDArray[np.bool_]) -> float:
    """The weight of a relevant sentence in the binary loss; one that is not relevant has 1.

    "balanced" is the official train.py's: n-/n+, the sentences of the step's batch that are not relevant over
    those that are, so that both kinds weigh the same. A batch without relevant sentences has weight 1.
    ``relevant`` are all labels of the batch, (sentences,).
    """
    if positive_weight != "balanced":
        return positive_weight
    positives = int(relevant.sum())
    return (len(relevant) - positives) / positives if positives else 1.0


def listwise_divergence(logits: Tensor, targets: Tensor, temperature: float) -> Tensor:
    """Kullback-Leibler divergence of logits from a teacher's scores, as distributions over units: scalar.

    It is 0 where ``logits`` and ``targets / temperature`` differ by a constant.

    Parameters
    ----------
    logits, targets : (units,)
    temperature : float
        Divides the targets: the lower, the more only the teacher's best units count.
    """
    wanted = (targets / temperature).log_softmax(0)
    return F.kl_div(logits.log_softmax(0), wanted, reduction="sum", log_target=True)
