"""The weights with the best validation so far, kept on disk."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spscanner_rag.lab.training.inputs import Inputs
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.lab.training.state_file import (
    read_tensors,
    recipe_difference,
    refuse_other_shapes,
    saved_inputs,
    write_tensors,
)

BEST_FILE = "best_weights.pt"

_NEXT_STEP = "delete it, and the best weights are chosen among those of the validations to come"
_TYPES = {"step": int, "value": float, "recipe": str, "weights": dict}


class BestWeights:
    """The weights with the best validation so far, on disk.

    Weights found in a folder are used if they belong to this run and it resumes; else they are removed.

    Parameters
    ----------
    folder : Path
    recipe : Recipe
    step : int
        At which the run resumes; 0 for one that starts.
    inputs : Inputs, optional
        What the run learns from. Default: it is not compared.
    own : mapping of str to Tensor, optional
        Weights of the model, whose names and shapes those found must have.

    Raises
    ------
    ValueError
        If the run resumes and the file is damaged or of another model; names it and says what to do.
    """

    def __init__(
        self,
        folder: Path,
        recipe: Recipe,
        step: int,
        inputs: Inputs | None = None,
        own: Mapping[str, Tensor] | None = None,
    ) -> None:
        self._path = folder / BEST_FILE
        self._recipe, self._inputs = json.dumps(recipe.to_dict()), json.dumps(inputs)
        self.step: int | None = None
        self.value = -float("inf")
        if not self._path.exists():
            return
        found = read_tensors(self._path, _TYPES, next_step=_NEXT_STEP) if step else None
        if found is None or not self._is_of_this_run(found, recipe):
            self._path.unlink()
            return
        if own is not None:
            refuse_other_shapes(self._path, found["weights"], own, _NEXT_STEP)
        self.step, self.value = found["step"], found["value"]

    def _is_of_this_run(self, found: Mapping[str, Any], recipe: Recipe) -> bool:
        same_inputs = saved_inputs(found) in (None, json.loads(self._inputs))
        return same_inputs and recipe_difference(recipe, found["recipe"]) is None

    def offer(self, step: int, value: float, weights: Mapping[str, Tensor]) -> None:
        """Keep these weights if their value is higher than the best so far."""
        if value > self.value:
            kept = {"step": step, "value": float(value), "recipe": self._recipe, "inputs": self._inputs}
            write_tensors(self._path, kept | {"weights": dict(weights)})
            self.step, self.value = step, value

    def weights(self, device: torch.device) -> dict[str, Tensor] | None:
        """The best weights; None before the first `offer`."""
        if self.step is None:
            return None
        weights: dict[str, Tensor] = read_tensors(self._path, _TYPES, device=device, next_step=_NEXT_STEP)[
            "weights"
        ]
        return weights
