"""Damage to a checkpoint's tensors in a well-formed file, and contents of pickles."""

import os
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from tests.attack.damages import Damage, name_of

WEIGHTS = ("model.safetensors", "pytorch_model.bin")


def weights_of(folder: Path) -> Path:
    return next(folder / name for name in WEIGHTS if (folder / name).exists())


def edit_tensors(folder: Path, edit: Callable[[dict[str, torch.Tensor]], None]) -> None:
    """Change the tensors of a well-formed file and keep it well-formed."""
    path = weights_of(folder)
    if path.suffix == ".bin":
        state = torch.load(path, weights_only=True)
        edit(state)
        torch.save(state, path)
        return
    tensors = load_file(path)
    edit(tensors)
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path)


def swap_tensors(folder: Path, rng: random.Random) -> None:
    def edit(tensors: dict[str, torch.Tensor]) -> None:
        pairs = [
            (one, two)
            for one in tensors
            for two in tensors
            if one < two and tensors[one].shape == tensors[two].shape
            if not torch.equal(tensors[one], tensors[two])
        ]
        one, two = rng.choice(pairs)
        tensors[one], tensors[two] = tensors[two], tensors[one]

    edit_tensors(folder, edit)


def _set_values(
    value: float, folder: Path, rng: random.Random, share: float = 0.1
) -> None:
    def edit(tensors: dict[str, torch.Tensor]) -> None:
        name = rng.choice(
            [
                name
                for name, tensor in tensors.items()
                if tensor.any() and name != "lm_head.weight"
            ]
        )
        flat = tensors[name].clone().flatten()
        start = rng.randrange(len(flat))
        flat[start : start + max(1, int(len(flat) * share))] = value
        # a change even if the block held zeros already
        flat[0] = value if start == 0 else flat[0] + 1.0
        tensors[name] = flat.view(tensors[name].shape)

    edit_tensors(folder, edit)


def zero_block(folder: Path, rng: random.Random) -> None:
    _set_values(0.0, folder, rng, share=rng.choice((0.1, 1.0)))


def absurd_values(folder: Path, rng: random.Random) -> None:
    _set_values(
        rng.choice((float("nan"), float("inf"), -float("inf"), 3e38, -1e7)),
        folder,
        rng,
        share=0.0,
    )


def large_values(folder: Path, rng: random.Random) -> None:
    """Values that checks of single weights do not refuse."""
    _set_values(rng.choice((9e5, -9e5, 1e4)), folder, rng, share=rng.choice((0.0, 1.0)))


def other_tensors(folder: Path, rng: random.Random) -> None:
    """A tensor is missing, added, or has another name, shape or type."""
    kind = rng.randrange(5)

    def edit(tensors: dict[str, torch.Tensor]) -> None:
        name = rng.choice([name for name in tensors if name != "lm_head.weight"])
        if kind == 0:
            del tensors[name]
        elif kind == 1:
            tensors[rng.choice(("x", "a\nb\x1b[31m", f"{name}.", "\u202e"))] = (
                tensors.pop(name)
            )
        elif kind == 2:
            tensors[name] = torch.cat([tensors[name], tensors[name]])
        elif kind == 3:
            tensors[name] = tensors[name].to(
                rng.choice((torch.int8, torch.bool, torch.complex64))
            )
        else:
            tensors["extra"] = torch.zeros(1)

    edit_tensors(folder, edit)


class _Calls:
    def __init__(self, function: Callable[..., Any], *arguments: object) -> None:
        self.what = (function, arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        return self.what


def hostile_pickle(folder: Path, rng: random.Random) -> None:
    """A pickle that runs code, fills the memory or is no state dict.

    In our layout it lies beside the weights.
    """
    path = folder / "pytorch_model.bin"
    state = (
        torch.load(path, weights_only=True) if path.exists() else {"a": torch.ones(2)}
    )
    mark = folder / "code-ran"
    content: Any = rng.choice(
        (
            state | {"x": _Calls(os.system, f"touch {mark}")},
            state | {"x": _Calls(eval, f"open({str(mark)!r}, 'w')")},
            state | {"x": _Calls(bytearray, 10**11)},
            state | {"x": torch.empty(10**9, device="meta")},
            _Calls(torch.zeros, 10**11),
            [state],
            {1: torch.ones(2)},
            state | {"x": "no tensor"},
            None,
        )
    )
    if rng.random() < 0.3:
        path.write_bytes(pickle.dumps(content))  # not an archive
    else:
        torch.save(content, path)


def tensor_damages() -> dict[str, Damage]:
    kinds = (
        swap_tensors,
        zero_block,
        absurd_values,
        large_values,
        other_tensors,
        hostile_pickle,
    )
    return {name_of(kind): kind for kind in kinds}
