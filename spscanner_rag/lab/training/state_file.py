"""Files that a run resumes from: written whole, and checked when they are read."""

import json
import logging
import pickle
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spscanner_rag.checkpoint.file_access import first_line
from spscanner_rag.checkpoint.whole_file import whole_file
from spscanner_rag.lab.training.inputs import Inputs, input_difference
from spscanner_rag.lab.training.recipe import Recipe

STATE_FILE = "training_state.pt"
START_AGAIN = "delete it to start again, or give another --out"

_LOGGER = logging.getLogger(__name__)
_STATE_TYPES = {"step": int, "seconds": float, "recipe": str, "model": dict, "extra": dict, "average": dict}


def write_tensors(path: Path, content: Mapping[str, Any]) -> None:
    """Write what torch can save: whole, or not at all.

    Raises
    ------
    OSError
        For a full disk, for example; the former file is still there then.
    """
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
    next_step: str = START_AGAIN,
    check: bool = True,
) -> dict[str, Any]:
    """Read a file of `write_tensors`.

    Parameters
    ----------
    path : Path
    types : mapping
        The keys that it must have, and the types of their values.
    device : torch.device or str, default "cpu"
        Where to put its tensors.
    next_step : str, optional
        What to do about a damaged file: the end of the message.
    check : bool, default True
        Whether to check the CRC32 of all its parts, which torch does not. Without, tensors are read when they are
        used, and only from a CPU.

    Raises
    ------
    ValueError
        For a file that is damaged or holds something else; names the file and says what to do.
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
            f"{path} cannot be read ({reason}): it is damaged, or another program wrote it; {next_step}"
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


def read_state(
    out: Path, recipe: Recipe, inputs: Inputs | None, device: torch.device, optimizers: Mapping[str, object]
) -> dict[str, Any]:
    """Read the state of a run, which goes on with this recipe and these inputs.

    ``optimizers`` has the names of those that it must hold. A state of a version that kept no digests of inputs is
    accepted, with a warning. For ``inputs`` of None nothing is compared.

    Raises
    ------
    ValueError
        For a damaged file, or the state of a run with another recipe or other inputs.
    """
    path = out / STATE_FILE
    state = read_tensors(path, _STATE_TYPES | dict.fromkeys(optimizers, dict), device=device)
    _refuse_others(path, state, recipe, inputs)
    if inputs is not None and saved_inputs(state) is None:
        _LOGGER.warning(
            "%s: saved by a version that did not keep digests of data, base and tokenizer, so they could not be "
            "compared; from the next state on they will be",
            path,
        )
    return state


def check_state(out: Path, recipe: Recipe, inputs: Inputs) -> None:
    """Raise the errors of `read_state` that are found quickly, before data is prepared; none without a state."""
    path = out / STATE_FILE
    if path.exists():
        _refuse_others(path, read_tensors(path, _STATE_TYPES, check=False), recipe, inputs)


def refuse_other_shapes(
    path: Path, found: Mapping[str, Tensor], own: Mapping[str, Tensor], next_step: str = START_AGAIN
) -> None:
    """Raise ``ValueError`` unless a file's tensors have the names and shapes of a model's."""
    for name in (*own, *found):
        shapes = [
            tuple(value.shape) if isinstance(value := of.get(name), Tensor) else None for of in (found, own)
        ]
        if shapes[0] != shapes[1]:
            raise ValueError(
                f"{path} is of another model: its tensor {name!r:.80} has the shape {shapes[0]}, expected "
                f"{shapes[1]}; {next_step}"
            )


def recipe_difference(recipe: Recipe, saved: str) -> str | None:
    """`Recipe.difference` to a recipe in JSON; ``ValueError`` if it is none."""
    values = json.loads(saved)
    if not isinstance(values, dict):
        raise ValueError(f"got a JSON {type(values).__name__} as its recipe")
    return recipe.difference(values)


def saved_inputs(content: Mapping[str, Any]) -> Inputs | None:
    """The inputs in a file that a run resumes from; None from a version that did not keep them."""
    saved: Inputs | None = json.loads(content.get("inputs") or "null")
    return saved


def _refuse_others(path: Path, state: Mapping[str, Any], recipe: Recipe, inputs: Inputs | None) -> None:
    try:
        difference = recipe_difference(recipe, state["recipe"])
        saved = saved_inputs(state)
        other = None if saved is None or inputs is None else input_difference(saved, inputs)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path}: damaged ({first_line(error)}); {START_AGAIN}") from None
    if difference is not None:
        raise ValueError(
            f"{path} is the state of a run with another recipe: {difference}; give that recipe to resume it, "
            "or another --out to start again"
        )
    if other is not None:
        raise ValueError(
            f"{path} is the state of a run with other inputs: {other}; give the same again to resume it, "
            "or another --out to start again"
        )
