"""What a training run needs from a stage, and the training loop from its objective."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from spscanner_rag.checkpoint import Checkpoint
from spscanner_rag.evidence.questions import Document
from spscanner_rag.evidence.sampling import is_held_out
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.training import Notify
from spscanner_rag.training.passes import Pass
from spscanner_rag.training.recipe import Recipe
from spscanner_rag.training.start import RunFiles


class Objective(Protocol):
    """What a model is trained for."""

    @property
    def extra(self) -> nn.Module:
        """What is trained beside the model and not kept with it."""
        ...

    def example(self, number: int, length: int) -> Any:  # noqa: ANN401 - plain data of the objective's own
        """Example ``number``, about ``length`` tokens long; the same in every run, also in another process."""
        ...

    def tokens(self, example: Any) -> int:  # noqa: ANN401
        """How many tokens the model reads of an example."""
        ...

    def loss(self, model: ScannerModel, examples: Sequence[Any], read: Pass) -> Tensor:
        """The part of a step's loss that a pass over some of its ``examples`` contributes; the parts add up."""
        ...


@dataclass(frozen=True, slots=True)
class Validation:
    """What a model achieves on documents that it is not trained on."""

    choice: float  # the one number that weights are chosen by: higher is better
    measures: dict[str, dict[str, float]]  # by source and name
    lines: tuple[str, ...]  # the same for people


class Stage(ABC):
    """One kind of training: its data, what it starts from, its objective and its validation.

    Raises
    ------
    ValueError
        For files that cannot be used.
    """

    measured: str
    """The name of the validation's measures in the checkpoint's record."""

    def __init__(self, files: RunFiles, recipe: Recipe, device: torch.device, notify: Notify) -> None:
        self._files, self._recipe, self._device, self._notify = files, recipe, device, notify

    @property
    @abstractmethod
    def held_out(self) -> Iterable[Document]:
        """Documents to validate on, from the first at each access."""

    @abstractmethod
    def start(self) -> Checkpoint:
        """The checkpoint to train, in float32, on the device to train on."""

    @abstractmethod
    def objective(self, start: Checkpoint) -> Objective:
        """What to train it for."""

    def finish(self, checkpoint: Checkpoint) -> Checkpoint:
        """The checkpoint after the steps that need its final weights: the last call before it is saved."""
        return checkpoint

    @abstractmethod
    def validate(self, checkpoint: Checkpoint, final: bool) -> Validation | None:
        """How well a checkpoint does, at the end more thoroughly; None without documents for it."""

    @abstractmethod
    def trained_on(self) -> dict[str, Any]:
        """What the checkpoint's record says about its data: sources with their sizes, documents left out."""


def is_set_aside(document: Document, sources: Iterable[str]) -> bool:
    """Whether a document is in the held-out tenth of one of ``sources``."""
    return document.source in sources and is_held_out(document.doc_id)
