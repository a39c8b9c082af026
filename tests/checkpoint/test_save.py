"""Saving checkpoints: the files are complete, or absent."""

import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer

from spscanner_rag.checkpoint import ScannerSettings, save, save_checkpoint
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.model import ScannerModel
from tests.checkpoint.conftest import FILES, SETTINGS, refused


def test_saved_files(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == FILES
    config = json.loads((folder / "config.json").read_text())
    digests = config["spscanner"].pop("sha256")
    assert sorted(digests) == ["config", "model.safetensors", "tokenizer.json"]
    assert config["spscanner"] == SETTINGS.to_dict()
    assert config["ssm_cfg"]["layer"] == "Mamba2"
    assert not any(
        stat.S_IMODE(path.stat().st_mode) & 0o111 for path in folder.iterdir()
    )
    modes = {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert len(modes) == 1, modes  # all permissions follow the umask; none is private


def test_a_failed_save(
    folder: Path, model: ScannerModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: Any, **kwargs: Any) -> None:
        Path(args[1]).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(save, "save_file", full)
    with refused(
        rf"{folder.parent / 'new'}: cannot write .*No space left on device.*; pass a"
        r" folder"
    ):
        save_checkpoint(folder.parent / "new", model, SETTINGS, None)
    assert [path.name for path in folder.parent.iterdir()] == ["ours"]


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_place_that_cannot_be_written(
    tmp_path: Path, model: ScannerModel, place: str
) -> None:
    (tmp_path / "file").write_text("mine")
    with refused("cannot write the checkpoint"):
        save_checkpoint(tmp_path / place, model, SETTINGS, None)
    assert (tmp_path / "file").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_misfits_are_not_saved(
    tmp_path: Path, model: ScannerModel, tiny_tokenizer: Tokenizer
) -> None:
    folder = tmp_path / "new"
    with refused(r"tensor match_embedding\.weight: the model and its settings"):
        save_checkpoint(folder, model, ScannerSettings(prior=True), None)
    small = ScannerModel(Mamba2Config(d_model=16, n_layer=1, vocab_size=100, headdim=8))
    with refused("vocab_size is 100"):
        save_checkpoint(folder, small, ScannerSettings(), tiny_tokenizer)
    with refused("cannot write the checkpoint .*not JSON serializable"):
        save_checkpoint(
            folder, model, replace(SETTINGS, training={"when": object()}), None
        )
    with torch.no_grad():
        model.backbone.norm_f.weight[3] = 1e5
    with refused(
        r"norm_f\.weight holds a weight of size 1e\+05, too large for float16"
    ):
        save_checkpoint(folder, model, SETTINGS, None, dtype=torch.float16)
    save_checkpoint(tmp_path / "float32", model, SETTINGS, None)
    with torch.no_grad():
        model.backbone.norm_f.weight[3] = float("nan")
    with refused(r"tensor backbone\.norm_f\.weight holds NaN"):
        save_checkpoint(folder, model, SETTINGS, None)
    assert not folder.exists()


def test_a_saved_tokenizer_is_whole(
    tmp_path: Path, model: ScannerModel, tiny_tokenizer: Tokenizer
) -> None:
    limited = Tokenizer.from_str(tiny_tokenizer.to_str())
    limited.enable_truncation(max_length=4)
    save_checkpoint(tmp_path / "new", model, SETTINGS, limited)
    assert (
        json.loads((tmp_path / "new" / "tokenizer.json").read_text())["truncation"]
        is None
    )
    assert limited.truncation is not None
