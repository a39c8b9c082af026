"""What a run learns from, by content."""

import gzip
import json
import re
import shutil
from pathlib import Path

import pytest

from spscanner_rag.lab.training.inputs import input_difference, inputs_of
from spscanner_rag.lab.training.start import RunFiles


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    for name in ("a.jsonl", "b.jsonl", "dev.jsonl", "walks.txt", "shape.json", "table"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    data, dev, text = (
        [tmp_path / "a.jsonl", tmp_path / "b.jsonl"],
        [tmp_path / "dev.jsonl"],
        [tmp_path / "walks.txt"],
    )
    out = tmp_path / "out"
    return RunFiles(data, dev, out, None, tmp_path / "shape.json", out, text, tmp_path / "table")


def moved(files: RunFiles, folder: Path) -> RunFiles:
    """The same files at other paths."""
    folder.mkdir()
    for path in (*files.data, *files.validation, *files.text, files.config, files.word_vectors):
        assert path is not None
        shutil.copy(path, folder)
    assert files.config is not None
    assert files.word_vectors is not None
    return RunFiles(
        [folder / path.name for path in files.data],
        [folder / path.name for path in files.validation],
        files.out,
        None,
        folder / files.config.name,
        files.teacher_cache,
        [folder / path.name for path in files.text],
        folder / files.word_vectors.name,
    )


def test_paths_may_move(files: RunFiles, tmp_path: Path) -> None:
    inputs = inputs_of(files)
    assert json.loads(json.dumps(inputs)) == inputs
    other = moved(files, tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "a.jsonl").rename(tmp_path / "elsewhere" / "renamed.jsonl")
    other.data[0] = tmp_path / "elsewhere" / "renamed.jsonl"  # type: ignore[index]
    assert input_difference(inputs, inputs_of(other)) is None


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("a.jsonl", "--data: got SHA-256 .* as file 1, the state was made with SHA-256"),
        ("b.jsonl", "--data: got SHA-256 .* as file 2, the"),
        ("dev.jsonl", "--validation: got"),
        ("walks.txt", r"--text: got SHA-256 .* as file 1 \(walks\)"),
        ("shape.json", "--config: got"),
        ("table", "--word-vectors: got"),
    ],
)
def test_other_content_is_told_by_option(files: RunFiles, tmp_path: Path, name: str, option: str) -> None:
    before = inputs_of(files)
    (tmp_path / name).write_text("other", encoding="utf-8")
    difference = input_difference(before, inputs_of(files))
    assert re.match(option, str(difference))


def test_more_fewer_and_exchanged_files(files: RunFiles, tmp_path: Path) -> None:
    before, data = inputs_of(files), list(files.data)
    for other, named in (
        (data[:1], "--data: got nothing as file 2, the state was made with SHA-256"),
        (data[::-1], "as file 1, the"),
        ([*data, data[0]], "as file 3, the state was made with nothing"),
    ):
        now = before | {"--data": inputs_of(RunFiles(other, [], files.out, None, None, files.out))["--data"]}
        assert named in str(input_difference(before, now))


def test_the_name_of_a_plain_text_is_an_input(files: RunFiles, tmp_path: Path) -> None:
    """It becomes the name of a source, by which questions are drawn."""
    before = inputs_of(files)
    files.text[0].rename(tmp_path / "roads.txt")
    files.text[0] = tmp_path / "roads.txt"  # type: ignore[index]
    assert "as file 1 (roads), the state was made with nothing" in str(
        input_difference(before, inputs_of(files))
    )


def test_a_base_is_its_files(tiny_checkpoint: Path, tmp_path: Path) -> None:
    def of(folder: Path) -> dict[str, dict[str, str]]:
        return inputs_of(RunFiles([], [], tmp_path, str(folder), None, tmp_path))

    assert set(of(tiny_checkpoint)["--base"]) == {"config.json"}  # which has the digests of the others
    old = shutil.copytree(tiny_checkpoint, tmp_path / "old")
    config = json.loads((old / "config.json").read_bytes())
    del config["spscanner"]["sha256"]
    (old / "config.json").write_text(json.dumps(config), encoding="utf-8")
    before = of(old)
    assert set(before["--base"]) == {"config.json", "tokenizer.json", "model.safetensors"}
    (old / "README.md").write_text("more", encoding="utf-8")
    assert of(shutil.copytree(old, tmp_path / "copy")) == before
    for name in before["--base"]:
        other = shutil.copytree(old, tmp_path / f"other {name}")
        (other / name).write_bytes((other / name).read_bytes() + b" ")
        assert f"--base: got SHA-256 {of(other)['--base'][name][:12]}... as {name}" in str(
            input_difference(before, of(other))
        )


def test_files_that_are_not_there_are_left_to_others(tmp_path: Path) -> None:
    files = RunFiles([tmp_path / "no", tmp_path], [], tmp_path, None, None, tmp_path)
    assert inputs_of(files)["--data"] == {}


def test_compressed_files_count_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    digests = set()
    for level in (1, 9):
        path.write_bytes(gzip.compress(b"abc" * 1000, level, mtime=0))
        digests.add(inputs_of(RunFiles([path], [], tmp_path, None, None, tmp_path))["--data"]["file 1"])
    assert len(digests) == 2
