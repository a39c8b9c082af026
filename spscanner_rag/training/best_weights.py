"""The weights that did best at a validation so far, on disk."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from spscanner_rag.training.recipe import Recipe

BEST_FILE = "best_weights.pt"


class BestWeights:
    """Keeps one set of weights: those with the highest value.

    Parameters
    ----------
    folder : Path
        Where the file lies; what is found there is gone on from, unless it is of another recipe.
    recipe : Recipe
    step : int
        The step that the run stands at. At 0 it begins anew, whatever is found.
    """

    def __init__(self, folder: Path, recipe: Recipe, step: int) -> None:
        self._path = folder / BEST_FILE
        self._recipe = json.dumps(recipe.to_dict())
        self.step: int | None = None
        self.value = -float("inf")
        if not self._path.exists():
            return
        found = torch.load(self._path, map_location="cpu", weights_only=True)
        if step and found["recipe"] == self._recipe:
            self.step, self.value = found["step"], found["value"]
        else:
            self._path.unlink()

    def offer(self, step: int, value: float, weights: Mapping[str, Tensor]) -> None:
        """Keep these weights if their value is higher than that of those kept."""
        if value <= self.value:
            return
        kept = {"step": step, "value": value, "recipe": self._recipe, "weights": dict(weights)}
        unfinished = self._path.with_name(self._path.name + ".part")
        torch.save(kept, unfinished)
        os.replace(unfinished, self._path)
        self.step, self.value = step, value

    def weights(self, device: torch.device) -> dict[str, Tensor] | None:
        """The weights kept; None if there are none."""
        if self.step is None:
            return None
        loaded: dict[str, Tensor] = torch.load(self._path, map_location=device, weights_only=True)["weights"]
        return loaded
