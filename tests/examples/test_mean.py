"""The mean of the weights of two scanners."""

import runpy
import shutil
import sys
from pathlib import Path

import pytest
import torch
from tokenizers import normalizers

from spscanner_rag.checkpoint import load_checkpoint, save_checkpoint

PROGRAM = Path(__file__).resolve().parents[2] / "examples" / "training" / "mean.py"


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", ["mean.py", *map(str, arguments)])
    runpy.run_path(str(PROGRAM), run_name="__main__")


@pytest.fixture
def trained(tiny_checkpoint: Path, tmp_path: Path) -> Path:
    checkpoint = load_checkpoint(tiny_checkpoint)
    with torch.no_grad():
        for weight in checkpoint.model.parameters():
            weight += 1
    save_checkpoint(tmp_path / "trained", checkpoint.model, checkpoint.settings, checkpoint.tokenizer)
    return tmp_path / "trained"


def test_weights_lie_between(
    monkeypatch: pytest.MonkeyPatch, tiny_checkpoint: Path, trained: Path, tmp_path: Path
) -> None:
    run(monkeypatch, tiny_checkpoint, trained, "--out", tmp_path / "mean", "--share", 0.25)
    before, found = load_checkpoint(tiny_checkpoint), load_checkpoint(tmp_path / "mean")
    for name, weight in before.model.state_dict().items():
        torch.testing.assert_close(found.model.state_dict()[name], weight + 0.25)
    assert found.settings.training["mean"] == {"with": str(tiny_checkpoint), "share": 0.25}
    assert found.tokenizer.to_str() == before.tokenizer.to_str()


def test_what_does_not_fit_is_refused(
    monkeypatch: pytest.MonkeyPatch, tiny_checkpoint: Path, trained: Path, tmp_path: Path
) -> None:
    with pytest.raises(SystemExit, match=r"got 2\.0; expected a number from 0 to 1"):
        run(monkeypatch, tiny_checkpoint, trained, "--out", tmp_path / "mean", "--share", 2)
    other = Path(shutil.copytree(tiny_checkpoint, tmp_path / "other"))
    checkpoint = load_checkpoint(other)
    checkpoint.tokenizer.normalizer = normalizers.Lowercase()
    save_checkpoint(other, checkpoint.model, checkpoint.settings, checkpoint.tokenizer)
    with pytest.raises(SystemExit, match="not the same tokenizer"):
        run(monkeypatch, other, trained, "--out", tmp_path / "mean")
    with pytest.raises(SystemExit, match="not the same shape"):
        run(monkeypatch, "default", trained, "--out", tmp_path / "mean")
    assert not (tmp_path / "mean").exists()
