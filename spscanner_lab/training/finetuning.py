"""What the trainings of an encoder and of a cross-reader share."""

import random
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path

from torch import Tensor, nn
from torch.nn.attention import SDPBackend
from torch.nn.functional import softplus

from spscanner_lab.training.encoder_data import Source
from spscanner_lab.training.loop import Trainer
from spscanner_lab.training.recipe import Recipe
from spscanner_rag.checkpoint.encoder_file import EncoderFile
from spscanner_rag.encoder.bert import restored
from spscanner_rag.encoder.bert_shape import WORD_EMBEDDINGS
from spscanner_rag.system.forks import compute_in_forks

LEARNING_RATE = 5e-5
FIRST_SCALE = 20.0  # of cosines, before the first step
FIRST_THRESHOLD = 0.5  # a cosine that separates, before the first step
# the gradient of the fused attention takes four times as long on a CPU
PLAIN_ATTENTION = SDPBackend.MATH


class Finetuning(nn.Module, ABC):
    """An encoder's weights and the objective of their `Trainer`.

    The weights start from the encoder's file. Word embeddings are frozen: they are half
    of the weights, and few words of a new document were trained on. ``seed`` and a
    step's number determine what the step draws.

    Parameters
    ----------
    file : EncoderFile
        The encoder to start from.
    sources : dict of str to list
        Tokenized documents by source.
    seed : int
        The seed for every random choice.
    fast_weights : dict of str to Tensor
        Further weights, trained at ten times the rate.
    """

    splits = False

    def __init__(
        self,
        file: EncoderFile,
        sources: dict[str, Source],
        seed: int,
        fast_weights: dict[str, Tensor],
    ) -> None:
        super().__init__()
        compute_in_forks()
        self.file = file
        self.sources = sources
        self.seed = seed
        self.fast_weights = nn.ParameterDict(fast_weights)
        self._encoder_weights = nn.ParameterList()
        restored_weights = restored(file.weights)
        for name in file.shape.tensors():
            self._encoder_weights.append(restored_weights[name].float().clone())
        self.weights[WORD_EMBEDDINGS].requires_grad_(False)

    @property
    def weights(self) -> dict[str, Tensor]:
        """The weights by name."""
        names = self.file.shape.tensors()
        return dict(zip(names, self._encoder_weights, strict=True))

    @abstractmethod
    def loss(self, rng: random.Random) -> Tensor:
        """The loss of a step that draws with ``rng``."""

    def example(self, number: int, length: int) -> random.Random:
        """The random generator of all that a step draws."""
        return random.Random(f"{self.seed}:{number}")

    def tokens(self, example: random.Random) -> int:
        """0: tokens are not counted."""
        return 0

    def losses(
        self,
        model: nn.Module,
        examples: Sequence[random.Random],
        numbers: Sequence[int],
    ) -> Iterator[Tensor]:
        """The loss of a step."""
        return map(self.loss, examples)

    def trainer(self, folder: Path, steps: int) -> Trainer:
        """The trainer of these weights, which resumes from a state in ``folder``."""
        recipe = Recipe(
            steps=steps,
            learning_rate=LEARNING_RATE,
            final_learning_rate=0.0,
            sequences_per_step=1,
            seed=self.seed,
        )
        inputs = {"sources": ", ".join(sorted(self.sources))}
        return Trainer(
            self, self, recipe, folder, inputs=inputs, fast=self.fast_weights.values()
        )

    def trained(self) -> dict[str, Tensor]:
        """A copy of the current weights."""
        return {name: weight.detach().clone() for name, weight in self.weights.items()}


def question_loss(
    scores: Tensor,
    right: Tensor,
    below: Tensor,
    threshold: Tensor | float,
    weight: float,
) -> Tensor:
    """The loss of a question from the scores of its sentences.

    It is the softmax loss of the right sentences among all, plus ``weight`` times a
    threshold loss: scores in ``below`` must stay below the threshold, and right ones
    exceed it. If no sentence is right, only scores in ``below`` count.

    Parameters
    ----------
    scores : Tensor
        (sentences,).
    right : Tensor
        Which sentences answer, (sentences,).
    below : Tensor
        Which sentences must stay below the threshold, (sentences,).
    threshold : Tensor or float
        The score that separates sentences that answer from others.
    weight : float
        The weight of the threshold loss.

    Examples
    --------
    >>> import torch
    >>> from spscanner_lab.training.finetuning import question_loss
    >>> right = torch.tensor([True, False])
    >>> for scores in ([5.0, -5.0], [-5.0, 5.0]):
    ...     loss = question_loss(torch.tensor(scores), right, ~right, 0.0, 0.5)
    ...     print(f"{loss:.3f}")
    0.007
    15.007
    """
    under = softplus(scores[below].logsumexp(0) - threshold)
    if not right.any():
        return under
    ranking = softplus(scores[~right].logsumexp(0) - scores[right]).mean()
    return ranking + weight * (under + softplus(threshold - scores[right].logsumexp(0)))
