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
    for name in ("a.jsonl", "b.jsonl", "dev.jsonl", "shape.json", "table"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    return files_in(tmp_path, "a.jsonl")


def files_in(folder: Path, first: str) -> RunFiles:
    data, out = [folder / first, folder / "b.jsonl"], folder / "out"
    return RunFiles(data, [folder / "dev.jsonl"], out, None, folder / "shape.json", folder / "table")


def test_paths_may_move(files: RunFiles, tmp_path: Path) -> None:
    inputs = inputs_of(files)
    assert json.loads(json.dumps(inputs)) == inputs
    elsewhere = Path(shutil.copytree(tmp_path, tmp_path / "elsewhere"))
    (elsewhere / "a.jsonl").rename(elsewhere / "renamed.jsonl")
    assert input_difference(inputs, inputs_of(files_in(elsewhere, "renamed.jsonl"))) is None


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("a.jsonl", "--data: got SHA-256 .* as file 1, the state was made with SHA-256"),
        ("b.jsonl", "--data: got SHA-256 .* as file 2, the"),
        ("dev.jsonl", "--validation: got"),
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


def test_absent_files_are_left_to_others_and_compressed_ones_count_as_they_are(tmp_path: Path) -> None:
    def digests(*paths: Path) -> dict[str, str]:
        return inputs_of(RunFiles(paths, [], tmp_path, None, None, tmp_path))["--data"]

    assert digests(tmp_path / "no", tmp_path) == {}
    packed = [tmp_path / f"{level}.jsonl.gz" for level in (1, 9)]
    for path in packed:
        path.write_bytes(gzip.compress(b"abc" * 1000, int(path.name[0]), mtime=0))
    assert len(set(digests(*packed).values())) == 2
