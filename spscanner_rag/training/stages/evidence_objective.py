"""The loss of the evidence stage: which sentences of a sequence answer its question."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.training.data.examples import Example, ExampleSource
from spscanner_rag.training.passes import Pass
from spscanner_rag.training.recipe import Recipe
from spscanner_rag.training.stages.objective import hidden_states


class EvidenceObjective:
    """Relevance of sentences, from labels and, where there is one, from a teacher.

    Parameters
    ----------
    source : ExampleSource
    recipe : Recipe
    d_model : int
        Width of the model, for the second head that learns the teacher's scores.
    shift : float, default 0.0
        Added to the logits in the loss; see `loss_shift`.
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
    shift: float = 0.0  # of the logits; neither the ranking nor a teacher sees it

    @property
    def lengths(self) -> list[int]:
        """Tokens of each example."""
        return [len(example.sequence.input_ids) for example in self.examples]

    def loss(self, model: ScannerModel, read: Pass) -> Tensor:
        """Binary and ranking loss on labels, and what a teacher adds: a pass's share of the step's."""
        examples = [self.examples[number] for number in read.members]
        ids = [example.sequence.input_ids for example in examples]
        classes = [e.sequence.match_classes for e in examples if e.sequence.match_classes is not None]
        hidden = hidden_states(model, ids, classes or None, self.recipe.dtype, read)
        loss = torch.zeros((), device=model.device)
        for row, example in zip(hidden[: len(examples)], examples, strict=True):
            ends = row[torch.from_numpy(example.sequence.positions).to(model.device)]  # (units, d_model)
            loss = loss + self._example_loss(model, ends.float(), example)
        return loss

    def _example_loss(self, model: ScannerModel, ends: Tensor, example: Example) -> Tensor:
        """Loss of one example from the hidden states at its unit ends, (units, d_model)."""
        recipe, device, sequences = self.recipe, model.device, len(self.examples)
        total_units = sum(len(other.relevant) for other in self.examples)
        prior = example.sequence.prior
        logits = model.score(ends, None if prior is None else torch.from_numpy(prior).to(device))  # (units,)
        relevant = torch.from_numpy(example.relevant.astype(np.float32)).to(device)  # (units,)
        weight = torch.tensor(recipe.positive_weight, device=device)
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


def listwise_divergence(logits: Tensor, targets: Tensor, temperature: float) -> Tensor:
    """Kullback-Leibler divergence of logits from a teacher's scores, as distributions over units.

    Parameters
    ----------
    logits, targets : (units,)
    temperature : float
        Divides the targets: the lower, the more only the teacher's best units count.

    Returns
    -------
    scalar, 0 where both order and differ alike
    """
    wanted = (targets / temperature).log_softmax(0)
    return F.kl_div(logits.log_softmax(0), wanted, reduction="sum", log_target=True)
