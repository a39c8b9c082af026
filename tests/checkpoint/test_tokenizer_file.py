"""The tokenizer that a checkpoint gets."""

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from spscanner_rag.checkpoint.errors import CheckpointError
from spscanner_rag.checkpoint.tokenizer_file import (
    find_tokenizer,
    read_tokenizer,
    refuse_small_vocabulary,
)
from spscanner_rag.mamba2.config import Mamba2Config
from tests.checkpoint.conftest import fill_cache, refused

OFFLINE: dict[str, Any] = {"local_files_only": True}


def limited(tokenizer: Tokenizer) -> Tokenizer:
    copy = Tokenizer.from_str(tokenizer.to_str())
    copy.enable_truncation(max_length=4)
    copy.enable_padding(length=8)
    return copy


@pytest.fixture
def folder(tmp_path: Path, tiny_tokenizer: Tokenizer) -> Path:
    limited(tiny_tokenizer).save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def test_own_tokenizer_reads_everything_and_no_more(
    folder: Path, tiny_tokenizer: Tokenizer
) -> None:
    text = "The keeper of the lighthouse wrote the date."
    found = find_tokenizer(None, folder, False, **OFFLINE)
    assert found.encode(text).ids == tiny_tokenizer.encode(text).ids
    assert found.encode("a").ids == tiny_tokenizer.encode("a").ids


@pytest.mark.parametrize("name", [".", "tokenizer.json", None])
def test_where_a_tokenizer_is_found(folder: Path, name: str | None) -> None:
    # otherwise its own one, even of a published scanner
    given = None if name is None else str(folder / name)
    found = find_tokenizer(given, folder, True, **OFFLINE, cache_dir=folder / "none")
    assert (found.truncation, found.padding, found.get_vocab_size()) == (
        None,
        None,
        384,
    )


@pytest.mark.parametrize(
    ("given", "repository"),
    [(None, "EleutherAI/gpt-neox-20b"), ("owner/name", "owner/name")],
)
def test_from_the_hub(
    tmp_path: Path, tiny_tokenizer: Tokenizer, given: str | None, repository: str
) -> None:
    options = OFFLINE | {"cache_dir": tmp_path / "cache"}
    with refused(
        rf"no tokenizer for .*{repository}.*pass tokenizer=PATH \(--tokenizer"
    ):
        find_tokenizer(given, tmp_path, True, **options)
    snapshot = fill_cache(tmp_path / "cache", repository)
    (snapshot / "config.json").write_text("{}")
    with refused(r"tokenizer\.json: No such file"):
        find_tokenizer(given, tmp_path, True, **options)
    tiny_tokenizer.save(str(snapshot / "tokenizer.json"))
    assert (
        find_tokenizer(given, tmp_path, True, **options).to_str()
        == tiny_tokenizer.to_str()
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "no tokenizer.json there; pass tokenizer="),
        (Path("absent"), "absent: no such folder; expected the folder of a tokenizer"),
        ("./absent", "./absent: no such folder"),
        (17, "tokenizer is a int; expected a tokenizers.Tokenizer"),
    ],
)
def test_no_tokenizer(tmp_path: Path, given: Any, message: str) -> None:
    with refused(message):
        find_tokenizer(given, tmp_path, False, **OFFLINE)


def test_vocabulary_smaller_than_the_tokenizer(tiny_tokenizer: Tokenizer) -> None:
    highest = max(tiny_tokenizer.get_vocab().values())
    config = {"d_model": 16, "n_layer": 1, "headdim": 8}
    refuse_small_vocabulary(
        Mamba2Config(vocab_size=highest + 1, **config),
        tiny_tokenizer,
        Path("config.json"),
    )
    with refused(rf"config\.json: vocab_size is {highest}, .*ids up to {highest}"):
        refuse_small_vocabulary(
            Mamba2Config(vocab_size=highest, **config),
            tiny_tokenizer,
            Path("config.json"),
        )


def edited(folder: Path, **parts: Any) -> Path:
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | parts))
    return path


def replacing(pattern: str, content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"String": pattern}, "content": content}


def test_errors_and_panics_of_the_library_name_the_file(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "other.json").write_bytes(b"\x80 not json")
    with refused(r"other\.json: not a tokenizer"):
        read_tokenizer(tmp_path / "other.json")
    path = edited(
        folder, normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"}
    )
    with pytest.raises(
        CheckpointError, match=rf"{path}: not a tokenizer \(.*precompiled_charsmap"
    ):
        read_tokenizer(path)


@pytest.mark.parametrize(
    "normalizer",
    [
        replacing("a", "b" * 65),
        replacing("", "x"),
        {"type": "Replace", "pattern": {"Regex": "."}, "content": "b" * 65},
        {"type": "Prepend", "prepend": "x" * 64},
        {
            "type": "Sequence",
            "normalizers": [
                {"type": "NFC"},
                {"type": "Sequence", "normalizers": [replacing("a", "a" * 10)] * 2},
            ],
        },
    ],
)
def test_a_normalizer_that_makes_a_text_many_times_as_long(
    folder: Path, normalizer: dict[str, Any]
) -> None:
    path = edited(folder, normalizer=normalizer)
    with refused(r"its normalizer can make a text \S+ times as long, expected at"):
        read_tokenizer(path)


@pytest.mark.parametrize(
    "normalizer",
    [
        {
            "type": "Sequence",
            "normalizers": [{"type": "Prepend", "prepend": "▁"}, replacing(" ", "▁")],
        },
        {"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": " "},
        {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
    ],
)
def test_usual_normalizers_are_read(folder: Path, normalizer: dict[str, Any]) -> None:
    assert read_tokenizer(edited(folder, normalizer=normalizer)).normalizer is not None


def test_dropout_is_switched_off(folder: Path, tiny_tokenizer: Tokenizer) -> None:
    text = "The keeper of the lighthouse wrote the date in his book every evening."
    model = json.loads(tiny_tokenizer.to_str())["model"] | {"dropout": 0.5}
    found = read_tokenizer(edited(folder, model=model))
    assert [found.encode(text).ids for _ in range(5)] == [
        tiny_tokenizer.encode(text).ids
    ] * 5
    given = Tokenizer.from_str(
        json.dumps(json.loads(tiny_tokenizer.to_str()) | {"model": model})
    )
    assert find_tokenizer(given, folder, False, **OFFLINE).model.dropout is None
    assert given.model.dropout == 0.5  # the caller's tokenizer is not changed
