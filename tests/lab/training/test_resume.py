"""A run resumes with what it was begun with: its inputs, its state, its folder."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from spscanner_rag.apps.cli import main
from spscanner_rag.files.folder_lock import folder_lock
from spscanner_rag.lab.training.recipe import Recipe, read_recipe
from spscanner_rag.lab.training.start import RunFiles
from spscanner_rag.lab.training.state_file import BEST_FILE, STATE_FILE, BestWeights
from spscanner_rag.lab.training.training_run import SNAPSHOTS, TrainingRun
from tests.lab.training.conftest import RECIPE, SHAPE


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    return written(tmp_path, "recipe.toml", RECIPE)


@pytest.fixture
def shape(tmp_path: Path) -> Path:
    return written(tmp_path, "shape.json", json.dumps(SHAPE))


def train(*arguments: object) -> int:
    return main(["train", *map(str, arguments)])


def written(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def changed(path: Path, before: bytes, after: bytes) -> None:
    content = path.read_bytes()
    assert before in content
    path.write_bytes(content.replace(before, after, 1))


@pytest.mark.parametrize("what", ["--data", "--validation", "--config", "tokenizer", "--base"])
def test_a_run_resumes_only_with_its_inputs(
    what: str,
    tmp_path: Path,
    recipe: Path,
    shape: Path,
    corpus_file: Path,
    validation_file: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out, moved = tmp_path / "out", tmp_path / "moved"
    data, dev = Path(shutil.copy(corpus_file, tmp_path)), Path(shutil.copy(validation_file, tmp_path))
    start = ["--config", shape]
    if what == "--base":
        assert train(recipe, *start, "--data", data, "--out", tmp_path / "base") == 0
        start = ["--base", tmp_path / "base"]

    def run() -> int:
        return train(recipe, *start, "--data", data, "--validation", dev, "--out", out)

    assert run() == 0
    moved.mkdir()
    data, dev = Path(shutil.move(data, moved)), Path(shutil.move(dev, moved))
    assert "found the state of step" not in capsys.readouterr().err
    assert run() == 0, "paths may change"
    assert "found the state of step 4, from which the run goes on" in capsys.readouterr().err
    changes = {
        "--data": (data, b"badger", b"dragon"),
        "--validation": (dev, b"badger", b"dragon"),
        "--config": (shape, b'"d_state": 8', b'"d_state":  8'),
        "tokenizer": (out / "tokenizer.json", b'"!":0,"\\"":1', b'"!":1,"\\"":0'),
        "--base": (tmp_path / "base" / "config.json", b"{", b" {"),
    }
    changed(*changes[what])
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert run() == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert f"{STATE_FILE} is the state of a run with other inputs: {what}: got SHA-256" in error
    assert "give the same again to resume it, or another --out to start again" in error
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_a_state_without_digests_is_resumed_and_gets_them(
    tmp_path: Path, recipe: Path, shape: Path, corpus_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    out, text = tmp_path / "out", recipe.read_text(encoding="utf-8")
    given = ["--config", shape, "--data", corpus_file, "--out", out]
    assert train(recipe, *given) == 0
    state = torch.load(out / STATE_FILE, weights_only=True)
    del state["inputs"]
    torch.save(state, out / STATE_FILE)
    longer = written(tmp_path, "longer.toml", text.replace("steps = 4", "steps = 6"))
    for warnings in (1, 0):
        caplog.clear()
        assert train(longer, *given) == 0
        assert len([message for message in caplog.messages if "could not be compared" in message]) == warnings
    assert torch.load(out / STATE_FILE, weights_only=True)["step"] == 6


@pytest.mark.parametrize("name", [STATE_FILE, BEST_FILE])
@pytest.mark.parametrize("content", [b"", b"hello world", "cut", "other"])
def test_damaged_files_of_a_run_are_one_line(
    name: str,
    content: bytes | str,
    tmp_path: Path,
    recipe: Path,
    shape: Path,
    corpus_file: Path,
    validation_file: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out, text = tmp_path / "out", recipe.read_text(encoding="utf-8")
    best = written(tmp_path, "best.toml", text + "keep_best = true\n")
    given = [best, "--config", shape, "--data", corpus_file, "--validation", validation_file]
    assert train(*given, "--out", out) == 0
    path = out / name
    if content == "cut":
        path.write_bytes(path.read_bytes()[:-1000])
    elif content == "other":  # the same file of a wider model
        wide = written(tmp_path, "wide.json", json.dumps(SHAPE | {"d_model": 32}))
        assert train(best, "--config", wide, *given[3:], "--out", tmp_path / "wide") == 0
        path.write_bytes((tmp_path / "wide" / name).read_bytes())
    else:
        assert isinstance(content, bytes)
        path.write_bytes(content)
    damaged = path.read_bytes()
    capsys.readouterr()
    if (name, content) == (BEST_FILE, "other"):  # of another run, as its inputs say: it is not taken
        assert train(*given, "--out", out) == 0
        return
    assert train(*given, "--out", out) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith(f"spscanner: {path} ")
    assert "delete it" in error or "another --out" in error
    assert path.read_bytes() == damaged


def test_best_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    BestWeights(tmp_path, Recipe(), 0).offer(10, 0.5, {"a": torch.zeros(2)})
    with pytest.raises(
        ValueError, match=r"of another model: its tensor 'a'.*; delete it, and the best weights are"
    ):
        BestWeights(tmp_path, Recipe(), 10, own={"a": torch.zeros(3)})


@pytest.mark.parametrize("source", ["macro", "micro"])
def test_a_source_to_validate_on_has_no_name_of_a_mean(
    source: str, tmp_path: Path, recipe: Path, shape: Path, corpus_file: Path, validation_file: Path
) -> None:
    dev = Path(shutil.copy(validation_file, tmp_path))
    dev.write_bytes(dev.read_bytes().replace(b'"source": "walks"', f'"source": "{source}"'.encode()))
    with pytest.raises(ValueError, match=f"validation: got the source '{source}', the name of a mean"):
        TrainingRun(
            RunFiles([corpus_file], [dev], tmp_path / "out", None, shape, tmp_path / "teacher"),
            read_recipe(recipe),
            torch.device("cpu"),
        )


def test_a_text_to_validate_on_is_not_called_as_the_mean(tmp_path: Path, shape: Path) -> None:
    plain_text, dev = (
        written(tmp_path, "a.txt", "An otter came. " * 100),
        written(tmp_path, "all.txt", "A heron."),
    )
    with pytest.raises(ValueError, match="validation: got the source 'all', the name of a mean"):
        TrainingRun(
            RunFiles([plain_text], [dev], tmp_path / "out", None, shape, tmp_path / "teacher"),
            replace(Recipe(), stage="language-model"),
            torch.device("cpu"),
        )


def test_two_runs_do_not_share_a_folder(
    tmp_path: Path, recipe: Path, shape: Path, corpus_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    given = (recipe, "--config", shape, "--data", corpus_file, "--out", out)
    with folder_lock(out):
        assert train(*given) == 2
        assert f"{out}: in use by another run (process {os.getpid()})" in capsys.readouterr().err
        assert [path.name for path in out.iterdir()] == [".lock"]
    leftover = out / SNAPSHOTS / f".step-2-{'0' * 32}.partial"
    leftover.mkdir(parents=True)
    assert train(*given) == 0
    assert "removed 1 unfinished files" in capsys.readouterr().err
    assert not leftover.exists()
