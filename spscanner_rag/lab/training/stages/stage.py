"""The interfaces of a training stage, which a run drives, and of its objective, which the loop drives."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from spscanner_rag.checkpoint import Checkpoint
from spscanner_rag.lab.evidence.questions import Document
from spscanner_rag.lab.training import Notify
from spscanner_rag.lab.training.passes import Pass
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.lab.training.start import RunFiles
from spscanner_rag.mamba2.model import ScannerModel


class Objective(Protocol):
    """What a model is trained for."""

    @property
    def extra(self) -> nn.Module:
        """Modules that are trained together with the model but not saved in the checkpoint."""
        ...

    def example(self, number: int, length: int) -> Any:  # noqa: ANN401 - plain data of the objective's own
        """Example ``number``, about ``length`` tokens long; the same in every run and every process."""
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
    lines: tuple[str, ...]  # the measures as text for people to read


class Stage(ABC):
    """One kind of training: its data, what it starts from, its objective and its validation.

    Raises ``ValueError`` for files that cannot be used.
    """

    measured: str
    """The key of the validation's measures in the checkpoint's training record."""

    def __init__(self, files: RunFiles, recipe: Recipe, device: torch.device, notify: Notify) -> None:
        self._files, self._recipe, self._device, self._notify = files, recipe, device, notify

    @property
    @abstractmethod
    def held_out(self) -> Iterable[Document]:
        """Documents to validate on; each access starts again at the first."""

    @abstractmethod
    def start(self) -> Checkpoint:
        """The checkpoint to train, in float32, on the device to train on."""

    @abstractmethod
    def objective(self, start: Checkpoint) -> Objective:
        """What to train it for."""

    def finish(self, checkpoint: Checkpoint) -> Checkpoint:
        """The checkpoint after work that needs its final weights; called last, before it is saved."""
        return checkpoint

    @abstractmethod
    def validate(self, checkpoint: Checkpoint, final: bool) -> Validation | None:
        """How well a checkpoint does, measured more thoroughly at the end; None without held-out documents."""

    @abstractmethod
    def trained_on(self) -> dict[str, Any]:
        """What the checkpoint's record says about its data: sources with their sizes, documents left out."""
