"""The tokenizer that a checkpoint gets."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from spscanner_rag.checkpoint.errors import CheckpointError
from spscanner_rag.checkpoint.tokenizer_file import (
    find_tokenizer,
    read_tokenizer,
    refuse_small_vocabulary,
    tokenizer_of,
)
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.text.encoding import encode
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


PLAIN: dict[str, Any] = {
    "version": "1.0",
    "added_tokens": [],
    "model": {
        "type": "BPE",
        "vocab": {"a": 0, "b": 1, "ab": 2, "aba": 3, " ": 4},
        "merges": ["a b", "ab a"],
    },
}


def with_model(**parts: Any) -> dict[str, Any]:
    return PLAIN | {"model": PLAIN["model"] | parts}


def nested(kind: str, depth: int, inner: str) -> str:
    """A tokenizer of parts in parts, as text."""
    before = f'{{"type": "Sequence", "{kind}": ['
    stored = json.dumps(PLAIN)[:-1]
    key = kind.removesuffix("s").replace("pretok", "pre_tok")
    return f'{stored}, "{key}": {before * depth}{inner}{"]}" * depth}}}'


def repeating(times: int) -> dict[str, Any]:
    piece = {"Sequence": {"id": "A", "type_id": 0}}
    pair = [piece, {"Sequence": {"id": "B", "type_id": 0}}]
    return {
        "type": "TemplateProcessing",
        "single": [piece] * times,
        "pair": pair,
        "special_tokens": {},
    }


HOSTILE = {
    "deep JSON": "[" * 100_000 + "]" * 100_000,
    "deep objects": '{"model": ' * 100_000 + "1" + "}" * 100_000,
    "normalizers in normalizers": nested("normalizers", 5_000, '{"type": "NFC"}'),
    "splits in splits": nested("pretokenizers", 5_000, '{"type": "Whitespace"}'),
    "a merge of nothing known": with_model(merges=["a z"]),
    "a merge into nothing known": with_model(merges=["b b"]),
    "merges in a circle": with_model(merges=["a b", "ab a", "aba b", "abab a"]),
    "a merge of empty tokens": with_model(merges=[["", ""]]),
    "a merge of three": with_model(merges=[["a", "b", "a"]]),
    "a negative id": with_model(vocab={"a": -1}, merges=[]),
    "an id of 40 bits": with_model(vocab={"a": 2**40}, merges=[]),
    "an endless prefix": PLAIN
    | {"normalizer": {"type": "Prepend", "prepend": "x" * 100}},
    "a text 50 times": PLAIN | {"post_processor": repeating(50)},
    "a text no times": PLAIN | {"post_processor": repeating(0)},
    "a text twice, twice": PLAIN
    | {
        "post_processor": {"type": "Sequence", "processors": [repeating(2)] * 2},
    },
    "an unknown token beyond": PLAIN
    | {"model": {"type": "Unigram", "unk_id": 9, "vocab": [["a", 0.0]]}},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_tokenizer_is_refused(name: str) -> None:
    content = HOSTILE[name]
    if not isinstance(content, str):
        content = json.dumps(content)
    with refused(r"tokenizer\.json: not a tokenizer \("):
        tokenizer_of(content.encode(), Path("tokenizer.json"))


LAVISH = {
    "a pattern that tries everything": PLAIN
    | {
        "pre_tokenizer": {
            "type": "Split",
            "pattern": {"Regex": "(a+)+$"},
            "behavior": "Isolated",
            "invert": False,
        }
    },
    "equal ids": with_model(vocab={"a": 0, "b": 0, "ab": 0}, merges=["a b"]),
    "a huge token": with_model(vocab={"a": 0, "x" * 10**6: 1}, merges=[]),
    "long merges": with_model(
        vocab={"a" * length: length for length in range(1, 300)},
        merges=[["a" * length, "a"] for length in range(1, 299)],
    ),
}


@pytest.mark.parametrize("name", LAVISH)
def test_a_lavish_tokenizer_reads_or_says_that_it_fails(name: str) -> None:
    content = json.dumps(LAVISH[name]).encode()
    tokenizer = tokenizer_of(content, Path("tokenizer.json"))
    for text in ("a b", "ab" * 500, "a" * 40 + "!"):
        n_tokens = 0
        with suppress(ValueError):  # the library gave up
            n_tokens = len(encode(tokenizer, text).ids)
        assert n_tokens <= len(text)
