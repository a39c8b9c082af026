"""The loss of the evidence stage: which sentences of a sequence answer its question."""

from collections.abc import Sequence
from dataclasses import dataclass

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
    source : ExampleSource
    recipe : Recipe
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

    def draw(self, step: int, length: int) -> list[Example]:
        """The examples of a step."""
        count = self._recipe.sequences_per_step
        numbers = range(step * count, (step + 1) * count)
        return [self._source.example(number, length) for number in numbers]

    def batch(self, drawn: list[Example]) -> "EvidenceBatch":
        """Examples with what their loss needs."""
        return EvidenceBatch(drawn, self._recipe, self._teacher_head, self._shift)


@dataclass(frozen=True, slots=True)
class EvidenceBatch:
    """Examples of one step."""

    examples: Sequence[Example]
    recipe: Recipe
    teacher_head: nn.Module | None
    shift: float = 0.0  # added to the logits in the binary loss alone

    @property
    def lengths(self) -> list[int]:
        """Tokens of each example."""
        return [len(example.sequence.input_ids) for example in self.examples]

    def loss(self, model: ScannerModel, read: Pass) -> Tensor:
        """Binary and ranking loss on labels, and what a teacher adds."""
        examples = [self.examples[number] for number in read.members]
        ids = [example.sequence.input_ids for example in examples]
        classes = [e.sequence.match_classes for e in examples if e.sequence.match_classes is not None]
        hidden = hidden_states(model, ids, classes or None, self.recipe.dtype, read)
        loss = torch.zeros((), device=model.device)
        labels = np.concatenate([example.relevant for example in self.examples])
        weight = weight_of_positives(self.recipe.positive_weight, labels)
        for row, example in zip(hidden[: len(examples)], examples, strict=True):
            ends = row[torch.from_numpy(example.sequence.positions).to(model.device)]  # (units, d_model)
            loss = loss + self._example_loss(model, ends.float(), example, len(labels), weight)
        return loss

    def _example_loss(
        self, model: ScannerModel, ends: Tensor, example: Example, total_units: int, positive_weight: float
    ) -> Tensor:
        """Loss of one example from the hidden states at its unit ends, (units, d_model)."""
        recipe, device, sequences = self.recipe, model.device, len(self.examples)
        prior = example.sequence.prior
        logits = model.score(ends, None if prior is None else torch.from_numpy(prior).to(device))  # (units,)
        relevant = torch.from_numpy(example.relevant.astype(np.float32)).to(device)  # (units,)
        weight = torch.tensor(positive_weight, device=device)
        shifted = logits + self.shift
        binary = F.binary_cross_entropy_with_logits(shifted, relevant, pos_weight=weight, reduction="sum")
        loss = binary / total_units
        if recipe.ranking_weight and example.relevant.any():  # without evidence there is no order to learn
            ranking = -(logits.log_softmax(0) * relevant).sum() / relevant.sum()
            loss = loss + recipe.ranking_weight * ranking / sequences
        if example.teacher is None:
            return loss
        targets = torch.from_numpy(example.teacher).to(device)  # (units,)
        if self.teacher_head is not None:
            error = F.mse_loss(self.teacher_head(ends)[:, 0], targets, reduction="sum")
            loss = loss + recipe.teacher_weight * error / total_units
        if recipe.distillation_weight:
            divergence = listwise_divergence(logits, targets, recipe.distillation_temperature)
            loss = loss + recipe.distillation_weight * divergence / sequences
        return loss


def weight_of_positives(positive_weight: PositiveWeight, relevant: NDArray[np.bool_]) -> float:
    """The weight of a relevant sentence in the binary loss; one that is not relevant has 1.

    "balanced" is the official train.py's: n-/n+, the sentences of the step's batch that are not relevant over
    those that are, so that both kinds weigh the same. A batch without relevant sentences has weight 1.

    Parameters
    ----------
    positive_weight : float or "balanced"
        The recipe's.
    relevant : (sentences,)
        All labels of the batch.
    """
    if positive_weight != "balanced":
        return positive_weight
    positives = int(relevant.sum())
    return (len(relevant) - positives) / positives if positives else 1.0


def listwise_divergence(logits: Tensor, targets: Tensor, temperature: float) -> Tensor:
    """Kullback-Leibler divergence of logits from a teacher's scores, as distributions over units.

    Parameters
    ----------
    logits, targets : (units,)
    temperature : float
        Divides the targets: the lower, the more only the teacher's best units count.

    Returns
    -------
    Tensor
        Scalar; 0 where the logits and the scores over ``temperature`` differ by a constant.
    """
    wanted = (targets / temperature).log_softmax(0)
    return F.kl_div(logits.log_softmax(0), wanted, reduction="sum", log_target=True)
