"""Saving over a checkpoint: at every moment the old or the new one loads."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer

from spscanner_rag.checkpoint import (
    Checkpoint,
    load_checkpoint,
    load_model,
    save_checkpoint,
)
from spscanner_rag.checkpoint.location import current_files
from spscanner_rag.mamba2.model import ScannerModel
from tests.checkpoint.conftest import CONFIG, FILES, SETTINGS, remove_digests

# every way in which saving changes a folder, through `os`, pathlib, shutil or our own
# code
CHANGES = ("mkdir", "rename", "replace", "link", "unlink", "rmdir", "fsync")


class Killed(BaseException):
    """No code handles this exception."""


@pytest.fixture
def other_tokenizer(tiny_tokenizer: Tokenizer) -> Tokenizer:
    other = Tokenizer.from_str(tiny_tokenizer.to_str())
    other.add_tokens(["lighthouse"])
    return other


@pytest.fixture
def other() -> ScannerModel:
    config = replace(CONFIG, vocab_size=400)
    return ScannerModel(
        config, match_embedding=True, lexical_prior=True, surroundings=True
    )


def content(loaded: Checkpoint) -> tuple[float, str]:
    """What distinguishes a checkpoint from another, and both from a mixture."""
    return (
        float(loaded.model.backbone.embedding.weight.detach().sum()),
        loaded.tokenizer.to_str(),
    )


def kill_at(patch: pytest.MonkeyPatch, number: int) -> None:
    """Make the change with this number, and all later ones, fail as after a kill."""
    numbers = count(1)

    def counted(change: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            if next(numbers) >= number:
                raise Killed
            return change(*arguments, **options)

        return call

    for name in CHANGES:
        patch.setattr(os, name, counted(getattr(os, name)))


def no_links(*_: Any, **__: Any) -> None:
    raise OSError(95, "Operation not supported")


def save_killed(
    folder: Path,
    model: ScannerModel,
    tokenizer: Tokenizer | None,
    number: int,
    links: bool = True,
) -> bool:
    """Save, and die at the change with this number; False if there are fewer."""
    with pytest.MonkeyPatch.context() as patch:
        if not links:
            patch.setattr(os, "link", no_links)
        kill_at(patch, number)
        try:
            save_checkpoint(folder, model, SETTINGS, tokenizer)
        except Killed:
            return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize(("digests", "links"), [(True, True), (False, False)])
def test_killed_at_every_change(
    folder: Path,
    other: ScannerModel,
    other_tokenizer: Tokenizer,
    digests: bool,
    links: bool,
) -> None:
    if not digests:
        remove_digests(folder)  # as an older version saved it
    (folder / "notes.md").write_text("mine")
    (folder / "runs").mkdir()
    (folder / "runs" / "log").write_text("mine too")
    old = content(load_checkpoint(folder))
    save_checkpoint(folder.parent / "new", other, SETTINGS, other_tokenizer)
    new = content(load_checkpoint(folder.parent / "new"))
    seen = []
    originals = {
        path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()
    }
    for number in range(1, 100):
        killed = save_killed(folder, other, other_tokenizer, number, links)
        found = content(load_checkpoint(folder))
        assert found in (old, new), number
        weight = load_model(folder).backbone.embedding.weight.detach()
        assert float(weight.sum()) == found[0]
        seen.append(found == new)
        assert (folder / "notes.md").read_text() == "mine"
        assert (folder / "runs" / "log").read_text() == "mine too"
        if not killed:
            break
        # the next run saves again
        save_checkpoint(folder, other, SETTINGS, other_tokenizer)
        assert content(load_checkpoint(folder)) == new
        assert current_files(folder) == folder
        for name, data in originals.items():  # restore the old one
            (folder / name).write_bytes(data)
    else:
        pytest.fail("saving never ended")
    assert seen == sorted(seen)  # the old one first, then the new one
    assert 4 < sum(seen) < len(seen) - 4


def test_a_tokenizer_that_is_not_saved_again_stays(
    folder: Path, model: ScannerModel
) -> None:
    tokenizer = (folder / "tokenizer.json").read_bytes()
    with torch.no_grad():
        model.backbone.norm_f.weight += 1
    for number in range(1, 30):
        save_killed(folder, model, None, number)
        load_checkpoint(folder)
        assert (folder / "tokenizer.json").read_bytes() == tokenizer


def test_several_programs_save_to_one_folder(
    tmp_path: Path,
    model: ScannerModel,
    other: ScannerModel,
    tiny_tokenizer: Tokenizer,
    other_tokenizer: Tokenizer,
) -> None:
    folder, wholes = tmp_path / "one", []  # whichever comes first creates it
    for whole, tokenizer in ((model, tiny_tokenizer), (other, other_tokenizer)):
        save_checkpoint(tmp_path / "whole", whole, SETTINGS, tokenizer)
        wholes.append(content(load_checkpoint(tmp_path / "whole")))

    # threads, each with its own lock, like processes
    def save_often(
        number: int,
    ) -> None:
        for _ in range(10):
            whole, tokenizer = ((model, tiny_tokenizer), (other, other_tokenizer))[
                number % 2
            ]
            save_checkpoint(folder, whole, SETTINGS, tokenizer)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(save_often, range(4)))
    assert content(load_checkpoint(folder)) in wholes
    assert sorted(path.name for path in folder.iterdir()) == FILES
