"""Files that a run resumes from: written whole, and checked when they are read."""

import json
import pickle
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from spscanner_rag.checkpoint.unfinished import whole_file
from spscanner_rag.lab.training.inputs import Inputs, input_difference
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.text.escaping import first_line

STATE_FILE = "training_state.pt"
START_AGAIN = "delete it to start again, or give another --out"

_STATE_TYPES = {"step": int, "recipe": str, "inputs": str, "seconds": float}
_STATE_TYPES |= dict.fromkeys(("model", "average", "optimizer", "best"), dict)


def write_tensors(path: Path, content: Mapping[str, Any]) -> None:
    """Write what torch can save: whole, or not at all. After an ``OSError`` the former file is still there."""
    with whole_file(path) as unfinished, unfinished.open("wb") as file:
        try:
            torch.save(dict(content), file)
        except RuntimeError as error:
            if isinstance(error.__context__, OSError):  # behind which torch hides a full disk
                raise error.__context__ from None
            raise


def read_tensors(path: Path, types: Mapping[str, type], device: torch.device | str = "cpu") -> dict[str, Any]:
    """Read a file of `write_tensors` that has the keys of ``types``, with values of these types."""
    try:
        _refuse_damaged(path)
        content = torch.load(path, map_location=device, weights_only=True)
        if not isinstance(content, dict):
            raise ValueError(f"it holds a {type(content).__name__}, not an object")
        for key, expected in types.items():
            if not isinstance(content.get(key), expected):
                raise ValueError(f"it has no {key!r} of type {expected.__name__}")
    except Exception as error:  # a damaged stream can lead the unpickler to raise anything
        reason = getattr(error, "strerror", None) or first_line(error)
        if isinstance(error, pickle.UnpicklingError):  # torch gives advice for another case
            reason = "it holds something else than tensors and numbers"
        raise ValueError(
            f"{path} cannot be read ({reason}): it is damaged, or another program wrote it; {START_AGAIN}"
        ) from None
    return content


def _refuse_damaged(path: Path) -> None:
    """Raise ``ValueError`` for what is no archive of `torch.save`, or has a wrong CRC32, which torch ignores."""
    with path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            raise ValueError(
                "it is no complete archive of torch.save" if path.stat().st_size else "it is empty"
            )
        damaged = zipfile.ZipFile(file).testzip()
        if damaged is not None:
            raise ValueError(f"the CRC32 of its part {damaged} is wrong")


def read_state(
    out: Path, recipe: Recipe, inputs: Inputs, device: torch.device | str = "cpu"
) -> dict[str, Any] | None:
    """Read the state of a run with this recipe and these inputs; None if there is none.

    ``ValueError`` for that of another run, or a damaged one.
    """
    path = out / STATE_FILE
    if not path.exists():
        return None
    state = read_tensors(path, _STATE_TYPES, device)
    try:
        found = {
            "recipe": recipe.difference(json.loads(state["recipe"])),
            "inputs": input_difference(json.loads(state["inputs"]), inputs),
        }
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path}: damaged ({first_line(error)}); {START_AGAIN}") from None
    for what, difference in found.items():
        if difference is not None:
            raise ValueError(
                f"{path} is the state of a run with other {what}: {difference}; give the same again to resume "
                "it, or another --out to start again"
            )
    return state
