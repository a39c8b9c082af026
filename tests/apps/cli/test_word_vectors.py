"""`spscanner word-vectors`: from texts and an embedding model to the table of a checkpoint."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from spscanner_rag.baselines import dense
from spscanner_rag.checkpoint.file_access import read_word_vectors

Run = Callable[..., Any]  # code, out, err


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("The ship has a mast. The boat has a mast, the ship has two.", encoding="utf-8")
    return path


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the models that were loaded; each of them embeds letters."""
    loaded: list[str] = []

    def encode(texts: list[str], **options: object) -> NDArray[np.float32]:
        return np.array([[text.count(letter) + 1 for letter in "abehimopst"] for text in texts], np.float32)

    def load(name: str, *options: object) -> object:
        loaded.append(name)
        return SimpleNamespace(encode=encode)

    monkeypatch.setattr(dense, "_load", load)
    return loaded


def test_a_table_of_a_text(run: Run, text: Path, tmp_path: Path, models: list[str]) -> None:
    out = tmp_path / "word_vectors.safetensors"
    arguments = ("word-vectors", "--model", "minilm", "--text", text, "--text", text, "--out", out)
    code, printed, said = run(*arguments, "--words", 5, "--dimensions", 3)
    assert (code, printed) == (0, "")
    assert said.splitlines()[:2] == ["counting the words of 2 files", "embedding 5 words"]
    assert "5 words, 3 dimensions, 0.0 MB" in said
    table = read_word_vectors(out)
    assert table.words == ("has", "the", "a", "mast", "ship")
    assert (table.dimensions, table.source) == (3, "sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0)")
    assert models == ["sentence-transformers/all-MiniLM-L6-v2"]
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".part"] == []


def test_another_model_is_named_without_its_folders(
    run: Run, text: Path, tmp_path: Path, models: list[str]
) -> None:
    arguments = ("word-vectors", "--model", "/home/me/models/small", "--text", text, "--out", tmp_path / "t")
    assert run(*arguments, "--dimensions", 2, "--no-progress") == (0, "", "")
    assert models == ["/home/me/models/small"]
    assert read_word_vectors(tmp_path / "t").source == "small"


@pytest.mark.parametrize(
    ("text", "out", "message"),
    [
        ("text.txt", "absent/table", "absent: no such folder"),
        ("absent.txt", "table", "absent.txt: no such file"),
    ],
)
def test_files_are_checked_before_the_model_is_loaded(
    run: Run, text: str, out: str, message: str, tmp_path: Path, models: list[str]
) -> None:
    (tmp_path / "text.txt").touch()
    arguments = ("word-vectors", "--model", "minilm", "--text", tmp_path / text, "--out", tmp_path / out)
    code, _, said = run(*arguments)
    assert (code, models) == (2, [])
    assert message in said
