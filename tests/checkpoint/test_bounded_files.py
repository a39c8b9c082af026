"""What is no regular file, or too large, is refused before it is read."""

import os
from pathlib import Path

import pytest

from spscanner_rag.checkpoint import load_checkpoint
from spscanner_rag.checkpoint.bounded_files import LARGEST_JSON, read_json
from spscanner_rag.checkpoint.encoder_file import read_encoder
from spscanner_rag.checkpoint.tokenizer_file import read_tokenizer
from spscanner_rag.checkpoint.word_vectors_file import read_word_vectors
from tests.checkpoint.conftest import FILES, refused, remove_digests

KINDS = {
    "a folder, a pipe": os.mkfifo,
    "a folder": os.mkdir,
    "a folder, a pipe or a device": lambda path: os.symlink("/dev/zero", path),
    "Too many levels of symbolic links": lambda path: os.symlink(path.name, path),
    "No such file": lambda path: os.symlink("absent", path),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("digests", [True, False])
def test_what_is_no_regular_file_is_refused_by_name(
    folder: Path, name: str, kind: str, digests: bool
) -> None:
    if not digests:
        remove_digests(folder)
    (folder / name).unlink()
    KINDS[kind](folder / name)
    with refused(rf"{name}: {kind}"):
        load_checkpoint(folder)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", KINDS)
def test_pickled_weights_too(folder: Path, kind: str) -> None:
    remove_digests(folder)
    (folder / "model.safetensors").unlink()
    KINDS[kind](folder / "pytorch_model.bin")
    with refused(rf"pytorch_model\.bin: {kind}"):
        load_checkpoint(folder)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    with path.open("wb") as file:
        file.truncate(LARGEST_JSON + 1)
    with refused(r"config\.json: 16,777,217 bytes; expected at most 16,777,216"):
        read_json(path)
    for read in (read_tokenizer, read_word_vectors, read_encoder):
        with path.open("wb") as file:
            file.truncate(2**40)  # a sparse file, too large for any memory
        with refused("bytes; expected at most"):
            read(path)
