"""Files that a run resumes from: whole, checked, and of this run."""

import io
import json
import random
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from spscanner_rag.lab.training.inputs import Inputs
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.lab.training.state_file import (
    STATE_FILE,
    read_state,
    read_tensors,
    write_tensors,
)

TYPES = {"step": int, "weights": dict}
CONTENT: dict[str, Any] = {"step": 3, "weights": {"a": torch.arange(1000.0)}}
INPUTS: Inputs = {"--data": "ab" * 32}


def saved(content: object) -> bytes:
    into = io.BytesIO()
    torch.save(content, into)
    return into.getvalue()


def zipped() -> bytes:
    into = io.BytesIO()
    with zipfile.ZipFile(into, "w") as archive:
        archive.writestr("a", "b")
    return into.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"hello world", b"\0" * 100, b"\x80\x02]q\x00.", b"PK\x05\x06" + b"\0" * 18),
        zipped(),
        saved([1, 2]),
        saved({"weights": {}}),
        saved({"step": "3", "weights": {}}),
        saved({"step": Path("/"), "weights": {}}),  # code
    ],
)
def test_damaged_and_foreign_files_are_one_message(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.pt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="it is damaged, or another program wrote it; delete it") as caught:
        read_tensors(path, TYPES)
    assert str(caught.value).startswith(f"{path} cannot be read (")
    assert "\n" not in str(caught.value)


def test_no_flipped_bit_changes_what_is_read(tmp_path: Path) -> None:
    path, draw = tmp_path / "a.pt", random.Random(0)
    write_tensors(path, CONTENT)
    assert list(tmp_path.iterdir()) == [path]
    whole = path.read_bytes()
    refused = 0
    for _ in range(100):
        damaged = bytearray(whole)
        damaged[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        try:
            content = read_tensors(path, TYPES)
        except ValueError:
            refused += 1
        else:  # in bytes that mean nothing, such as those between the parts
            assert content["step"] == 3
            assert torch.equal(content["weights"]["a"], CONTENT["weights"]["a"])
    assert refused > 50


def state(**changes: Any) -> dict[str, Any]:
    content: dict[str, Any] = {"step": 1, "seconds": 1.0, "optimizer": {}}
    content |= {"model": {}, "best": {}, "average": {}}
    recipe = json.dumps(Recipe().to_dict())
    return content | {"recipe": recipe, "inputs": json.dumps(INPUTS)} | changes


def test_a_state_belongs_to_a_recipe_and_inputs(tmp_path: Path) -> None:
    assert read_state(tmp_path, Recipe(), INPUTS) is None
    write_tensors(tmp_path / STATE_FILE, state())
    found = read_state(tmp_path, Recipe(), INPUTS)
    assert found is not None
    assert found["step"] == 1
    message = "other inputs: --data has other content .*; give the same again to resume it, or another --out"
    with pytest.raises(ValueError, match=message):
        read_state(tmp_path, Recipe(), {"--data": "cd" * 32})
    with pytest.raises(ValueError, match="other recipe: seed was 0 and is now 1"):
        read_state(tmp_path, replace(Recipe(), seed=1), INPUTS)


@pytest.mark.parametrize(
    "changes",
    [{"recipe": "{"}, {"recipe": "[]"}, {"inputs": "{"}, {"inputs": "[1]"}, {"inputs": "1"}],
)
def test_damaged_words_in_a_whole_file(tmp_path: Path, changes: dict[str, str]) -> None:
    write_tensors(tmp_path / STATE_FILE, state(**changes))
    with pytest.raises(ValueError, match=r"training_state\.pt: damaged .*; delete it to start again"):
        read_state(tmp_path, Recipe(), INPUTS)
