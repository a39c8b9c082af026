"""What a run learns from, by content."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from spscanner_rag.lab.training.inputs import input_difference, inputs_of
from spscanner_rag.lab.training.start import RunFiles


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    for name in ("a.jsonl", "b.jsonl", "dev.jsonl", "shape.json"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    return files_in(tmp_path, "a.jsonl")


def files_in(folder: Path, first: str) -> RunFiles:
    data, out = [folder / first, folder / "b.jsonl"], folder / "out"
    return RunFiles(data, [folder / "dev.jsonl"], out, None, folder / "shape.json")


def test_paths_may_move(files: RunFiles, tmp_path: Path) -> None:
    elsewhere = Path(shutil.copytree(tmp_path, tmp_path / "elsewhere"))
    (elsewhere / "a.jsonl").rename(elsewhere / "renamed.jsonl")
    assert input_difference(inputs_of(files), inputs_of(files_in(elsewhere, "renamed.jsonl"))) is None


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("a.jsonl", "--data"),
        ("b.jsonl", "--data"),
        ("dev.jsonl", "--validation"),
        ("shape.json", "--config"),
    ],
)
def test_other_content_is_told_by_option(files: RunFiles, tmp_path: Path, name: str, option: str) -> None:
    before = inputs_of(files)
    (tmp_path / name).write_text("other", encoding="utf-8")
    assert str(input_difference(before, inputs_of(files))).startswith(f"{option} has other content")


def test_a_state_with_word_vectors_of_its_own_is_refused(files: RunFiles) -> None:
    """They were an option once."""
    before = inputs_of(files) | {"--word-vectors": "ab" * 32}
    assert str(input_difference(before, inputs_of(files))).startswith("--word-vectors has other content")


def test_more_fewer_and_exchanged_files(files: RunFiles) -> None:
    before, data = inputs_of(files), list(files.data)
    for other in (data[:1], data[::-1], [*data, data[0]], []):
        now = inputs_of(replace(files, data=other))
        assert str(input_difference(before, now)).startswith("--data has other content")


def test_a_base_is_its_files(tiny_checkpoint: Path, tmp_path: Path) -> None:
    def of(folder: Path) -> str:
        return inputs_of(RunFiles([], [], tmp_path, str(folder), None))["--base"]

    recorded = Path(shutil.copytree(tiny_checkpoint, tmp_path / "recorded"))
    (recorded / "model.safetensors").write_bytes(b"its digest is in config.json, and loading checks it")
    assert of(recorded) == of(tiny_checkpoint)
    old = Path(shutil.copytree(tiny_checkpoint, tmp_path / "old"))
    config = json.loads((old / "config.json").read_bytes())
    del config["spscanner"]["sha256"]
    (old / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (old / "README.md").write_text("more", encoding="utf-8")
    assert of(shutil.copytree(old, tmp_path / "copy")) == of(old)
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        other = Path(shutil.copytree(old, tmp_path / f"other {name}"))
        (other / name).write_bytes((other / name).read_bytes() + b" ")
        assert of(other) != of(old)
