"""The weights with the best validation so far, kept on disk."""

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from spscanner_rag.files.whole_file import whole_file
from spscanner_rag.training.recipe import Recipe

BEST_FILE = "best_weights.pt"


class BestWeights:
    """The weights with the best validation so far, on disk.

    Weights found in ``folder`` are used if they belong to this recipe and the run resumes (``step`` is not 0).
    """

    def __init__(self, folder: Path, recipe: Recipe, step: int) -> None:
        self._path = folder / BEST_FILE
        self._recipe = json.dumps(recipe.to_dict())
        self.step: int | None = None
        self.value = -float("inf")
        if not self._path.exists():
            return
        found = torch.load(self._path, map_location="cpu", weights_only=True)
        if step and recipe.difference(json.loads(found["recipe"])) is None:
            self.step, self.value = found["step"], found["value"]
        else:
            self._path.unlink()

    def offer(self, step: int, value: float, weights: Mapping[str, Tensor]) -> None:
        """Keep these weights if their value is higher than the best so far."""
        if value > self.value:
            kept = {"step": step, "value": value, "recipe": self._recipe, "weights": dict(weights)}
            with whole_file(self._path) as unfinished:
                torch.save(kept, unfinished)
            self.step, self.value = step, value

    def weights(self, device: torch.device) -> dict[str, Tensor] | None:
        """The best weights; None before the first `offer`."""
        if self.step is None:
            return None
        loaded: dict[str, Tensor] = torch.load(self._path, map_location=device, weights_only=True)["weights"]
        return loaded
