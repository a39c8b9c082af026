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


def read_tensors(
    path: Path,
    types: Mapping[str, type],
    *,
    device: torch.device | str = "cpu",
    check: bool = True,
) -> dict[str, Any]:
    """Read a file of `write_tensors` that has the keys of ``types``, with values of these types.

    ``check`` reads all of it to check the CRC32 of its parts, which torch does not; without, tensors are read
    when they are used, and only from a CPU.
    """
    try:
        _refuse_no_archive(path, check)
        content = torch.load(path, map_location=device, weights_only=True, mmap=not check)
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


def _refuse_no_archive(path: Path, check: bool) -> None:
    """Raise ``ValueError`` for what is no archive of `torch.save` or, with ``check``, has a wrong CRC32."""
    with path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            raise ValueError(
                "it is no complete archive of torch.save" if path.stat().st_size else "it is empty"
            )
        damaged = zipfile.ZipFile(file).testzip() if check else None
        if damaged is not None:
            raise ValueError(f"the CRC32 of its part {damaged} is wrong")


def read_state(out: Path, recipe: Recipe, inputs: Inputs, device: torch.device) -> dict[str, Any]:
    """Read the state of a run with this recipe and these inputs; ``ValueError`` for another's or a damaged one."""
    path = out / STATE_FILE
    state = read_tensors(path, _STATE_TYPES, device=device)
    _refuse_others(path, state, recipe, inputs)
    return state


def check_state(out: Path, recipe: Recipe, inputs: Inputs) -> None:
    """Raise the errors of `read_state` that are found quickly, before data is prepared; none without a state."""
    path = out / STATE_FILE
    if path.exists():
        _refuse_others(path, read_tensors(path, _STATE_TYPES, check=False), recipe, inputs)


def _refuse_others(path: Path, content: Mapping[str, Any], recipe: Recipe, inputs: Inputs) -> None:
    try:
        found = {
            "recipe": recipe.difference(json.loads(content["recipe"])),
            "inputs": input_difference(json.loads(content["inputs"]), inputs),
        }
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path}: damaged ({first_line(error)}); {START_AGAIN}") from None
    for what, difference in found.items():
        if difference is not None:
            raise ValueError(
                f"{path} is the state of a run with other {what}: {difference}; give the same again to resume "
                "it, or another --out to start again"
            )
