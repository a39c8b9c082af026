"""Digests of a checkpoint's files: written by a save, checked by a load."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from spscanner_rag.checkpoint import (
    CheckpointError,
    load_checkpoint,
    load_model,
    locate,
)
from spscanner_rag.checkpoint.digests import fingerprint
from tests.checkpoint.conftest import remove_digests

FILES = ("model.safetensors", "tokenizer.json", "word_vectors.safetensors")


def written(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / "config.json").read_text())[
        "spscanner"
    ]["sha256"]
    return found


def edit_digests(folder: Path, value: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    config["spscanner"]["sha256"] = value
    (folder / "config.json").write_text(json.dumps(config))


def refused(
    folder: Path,
    name: str,
    message: str = r"its SHA-256 is not spscanner\.sha256\..*save the checkpoint again",
) -> None:
    with pytest.raises(CheckpointError, match=message) as caught:
        load_checkpoint(folder)
    assert str(caught.value).startswith(str(folder / name))
    assert "\n" not in str(caught.value)


def test_saved_digests_are_those_of_the_files(soft: Path) -> None:
    found = written(soft)
    del found["config"]
    assert found == {
        name: hashlib.sha256((soft / name).read_bytes()).hexdigest() for name in FILES
    }
    assert load_checkpoint(soft).verified == ("config.json", *FILES)


def test_the_bundled_checkpoint_has_digests() -> None:
    files = {
        "encoder.safetensors",
        "model.safetensors",
        "tokenizer.json",
        "word_vectors.safetensors",
    }
    assert set(written(locate(None))) == {"config", *files}
    assert set(load_checkpoint().verified) == {"config.json", *files}


def one_weight(path: Path) -> None:
    tensors = load_file(path)
    tensors["backbone.norm_f.weight"][3] += 1e-6
    save_file(tensors, path)


def test_other_weights_are_refused(folder: Path) -> None:
    one_weight(folder / "model.safetensors")
    refused(folder, "model.safetensors")
    with pytest.raises(CheckpointError, match="its SHA-256"):
        load_model(folder)
    remove_digests(folder)  # like published checkpoints and older ones of ours
    assert load_checkpoint(folder).verified == ()


def test_an_edited_configuration_is_refused(folder: Path) -> None:
    path = folder / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps(dict(reversed(config.items())), indent=7))
    load_checkpoint(folder)  # white space and order do not matter
    config["spscanner"]["reanchor_tokens"] = 257
    path.write_text(json.dumps(config))
    message = (
        r"its SHA-256 is not spscanner\.sha256\.config of config\.json, .*remove that"
        r" entry"
    )
    refused(folder, path.name, message)
    changed = json.loads(path.read_text())
    # changed on purpose; the other files are still checked
    del changed["spscanner"]["sha256"]["config"]
    path.write_text(json.dumps(changed))
    assert load_checkpoint(folder).verified == FILES[:2]


def test_weights_in_another_file_are_no_way_around(folder: Path) -> None:
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    refused(folder, "model.safetensors", "No such file")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, r"spscanner\.sha256 is None; expected an object"),
        ({"config": ["0" * 64]}, r"its SHA-256 is not spscanner\.sha256\.config"),
    ],
)
def test_digests_that_are_none(folder: Path, value: object, message: str) -> None:
    edit_digests(folder, value)
    refused(folder, "config.json", message)


def test_a_fingerprint_is_of_what_the_model_computes(
    folder: Path, tmp_path: Path
) -> None:
    before = fingerprint(folder)
    shutil.copytree(folder, tmp_path / "copy")
    (folder / "README.md").write_text("of no effect", encoding="utf-8")
    assert fingerprint(folder) == fingerprint(tmp_path / "copy") == before
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content + b" ")
        assert fingerprint(folder) != before
        (folder / name).write_bytes(content)
    assert fingerprint(folder) == before
