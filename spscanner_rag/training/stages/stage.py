"""What a stage of training has to be able to do, for one run to drive them all."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from spscanner_rag.checkpoint import Checkpoint
from spscanner_rag.evidence.questions import Document
from spscanner_rag.training.stages.objective import Objective


@dataclass(frozen=True, slots=True)
class Validation:
    """What a model achieves on documents that it is not trained on.

    Attributes
    ----------
    choice
        The one number that weights are chosen by: higher is better.
    measures
        By source: measure and value.
    lines
        The same for people.
    """

    choice: float
    measures: dict[str, dict[str, float]]
    lines: tuple[str, ...]


class Stage(Protocol):
    """One kind of training: its data, what it starts from, its objective and its validation."""

    measured: str
    """The name of the validation's measures in the checkpoint's record."""

    @property
    def held_out(self) -> Iterable[Document]:
        """Documents to validate on, again at every call."""
        ...

    def start(self) -> Checkpoint:
        """The checkpoint to train, in float32, on the device to train on."""
        ...

    def objective(self, start: Checkpoint) -> Objective:
        """What to train it for."""
        ...

    def finish(self, checkpoint: Checkpoint) -> Checkpoint:
        """The checkpoint with what can only be settled when its weights are: the last step before it is saved."""
        ...

    def validate(self, checkpoint: Checkpoint, final: bool) -> Validation | None:
        """How well a checkpoint does, at the end more thoroughly; None without documents for it."""
        ...

    def trained_on(self) -> dict[str, Any]:
        """What the checkpoint's record says about its data: sources with their sizes, documents left out."""
        ...
