"""A checkpoint's encoder: written, read, damaged, and replaced by the caller's."""

import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from spscanner_rag import Scanner
from spscanner_rag.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from spscanner_rag.checkpoint.encoder_file import (
    EncoderFile,
    find_encoder,
    read_encoder,
)
from spscanner_rag.checkpoint.file_names import ENCODER
from spscanner_rag.checkpoint.save import write_encoder
from spscanner_rag.encoder.meaning_weights import MeaningWeights

QUESTION, TEXT = (
    "who signed the treaty?",
    "The keeper wrote. He signed the treaty. It rained. The well was dry.",
)


@pytest.fixture
def file(encoder_file: EncoderFile, tmp_path: Path) -> Path:
    """A file of a tiny encoder."""
    write_encoder(tmp_path / ENCODER, encoder_file)
    return tmp_path / ENCODER


def test_what_is_written_is_read(file: Path, encoder_file: EncoderFile) -> None:
    write_encoder(file, encoder_file._replace(prefix="query: ", first_token=True))
    read, digest = read_encoder(file)
    assert (read.shape, read.prefix, read.first_token) == (
        encoder_file.shape,
        "query: ",
        True,
    )
    assert len(digest) == 64
    own, stored = (
        one.loaded("", "cpu", torch.float32)
        for one in (encoder_file, read._replace(prefix=""))
    )
    assert stored.tokenizer.to_str() == own.tokenizer.to_str()
    states = [one.model.states([[2, 5, 9, 3]]) for one in (own, stored)]
    assert torch.nn.functional.cosine_similarity(*states).min() > 0.99


def without(file: Path, name: str) -> None:
    """Remove a tensor."""
    tensors = load_file(file)
    del tensors[name]
    _save(file, tensors)


def _save(file: Path, tensors: dict[str, torch.Tensor], **changed: str) -> None:
    content = file.read_bytes()
    metadata = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])[
        "__metadata__"
    ]
    save_file(tensors, file, metadata=metadata | changed)


SCALES = "embeddings.word_embeddings.weight.scale"


def with_scales(file: Path, scale: float) -> None:
    """Give the words other scales."""
    tensors = load_file(file)
    _save(file, tensors | {SCALES: torch.full_like(tensors[SCALES], scale)})


def with_id(file: Path, number: int) -> None:
    """Give the last word of the tokenizer another id."""
    encoder, _ = read_encoder(file)
    tokenizer = json.loads(encoder.tokenizer.to_str())
    words = tokenizer["model"]["vocab"]
    words[max(words, key=words.get)] = number
    _save(file, load_file(file), tokenizer=json.dumps(tokenizer))


def with_tokenizer(file: Path, old: str, new: str) -> None:
    """Change the JSON of the tokenizer."""
    encoder, _ = read_encoder(file)
    stored = encoder.tokenizer.to_str()
    assert old in stored
    _save(file, load_file(file), tokenizer=stored.replace(old, new))


def with_added_token(file: Path, number: int) -> None:
    """Add a token with this id to the tokenizer."""
    encoder, _ = read_encoder(file)
    tokenizer = json.loads(encoder.tokenizer.to_str())
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "special"), False)
    token = {"id": number, "content": "<new>", "normalized": True} | flags
    tokenizer["added_tokens"].append(token)
    _save(file, load_file(file), tokenizer=json.dumps(tokenizer))


def with_size(file: Path, name: str, size: int) -> None:
    """State another size, and cut the tensor that has it."""
    tensors = load_file(file)
    encoder, _ = read_encoder(file)
    for tensor, shape in encoder.shape.tensors().items():
        if shape[0] == getattr(encoder.shape, name):
            for part in (tensor, f"{tensor}.scale"):
                if part in tensors:
                    tensors[part] = tensors[part][:size].clone()
    config = asdict(encoder.shape) | {"model_type": "bert", name: size}
    _save(file, tensors, config=json.dumps(config))


def vocabulary_of(file: Path) -> int:
    return read_encoder(file)[0].shape.vocab_size


DAMAGES = {
    "truncated": lambda file: file.write_bytes(file.read_bytes()[:-100]),
    "no tensor": lambda file: without(file, "embeddings.LayerNorm.weight"),
    "no scales": lambda file: without(file, "embeddings.word_embeddings.weight.scale"),
    "not finite": lambda file: _save(
        file,
        load_file(file)
        | {"embeddings.LayerNorm.bias": torch.full((16,), float("nan"))},
    ),
    "another shape": lambda file: _save(
        file, load_file(file) | {"embeddings.LayerNorm.bias": torch.zeros(8)}
    ),
    "no sizes": lambda file: _save(file, load_file(file), config="[]"),
    "huge sizes": lambda file: _save(
        file, load_file(file), config='{"model_type": "bert", "hidden_size": 1e9}'
    ),
    "scales not finite": lambda file: with_scales(file, float("nan")),
    "infinite scales": lambda file: with_scales(file, float("inf")),
    "huge scales": lambda file: with_scales(file, 10_000.0),
    "scales as whole numbers": lambda file: _save(
        file, load_file(file) | {SCALES: load_file(file)[SCALES].int()}
    ),
    "scales of one row": lambda file: _save(
        file, load_file(file) | {SCALES: load_file(file)[SCALES][:1].clone()}
    ),
    "scales of another shape": lambda file: _save(
        file, load_file(file) | {SCALES: load_file(file)[SCALES].flatten()}
    ),
    "ids beyond the vocabulary": lambda file: with_id(file, 10**6),
    "ids of more than 31 bits": lambda file: with_id(file, 2**32 - 1),
    "an id just beyond": lambda file: with_id(file, vocabulary_of(file)),
    "ids of more than 32 bits": lambda file: with_id(file, 2**32),
    "a negative id": lambda file: with_id(file, -1),
    "an id of 100 digits": lambda file: with_id(file, 10**100),
    "an added token beyond": lambda file: with_added_token(file, 10**6),
    "an added token just beyond": lambda file: with_added_token(
        file, vocabulary_of(file)
    ),
    "no [CLS]": lambda file: with_tokenizer(file, '"[CLS]"', '"[ABC]"'),
    "no [SEP]": lambda file: with_tokenizer(file, '"[SEP]"', '"[ABC]"'),
    "fifteen positions": lambda file: with_size(file, "max_position_embeddings", 15),
    "one word": lambda file: with_size(file, "vocab_size", 1),
    "two positions": lambda file: with_size(file, "max_position_embeddings", 2),
    "fewer words than the tokenizer": lambda file: with_size(file, "vocab_size", 9),
    "no tokenizer": lambda file: _save(file, load_file(file), tokenizer="{"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_refused_by_name(file: Path, damage: str) -> None:
    DAMAGES[damage](file)
    with pytest.raises(CheckpointError, match=ENCODER):
        read_encoder(file)


def test_what_is_no_encoder_is_refused(tiny_checkpoint: Path) -> None:
    for name in ("./no-such-folder", Path("no-such-folder")):
        with pytest.raises(
            CheckpointError, match="no such folder; expected the folder of an encoder"
        ):
            find_encoder(name)
    with pytest.raises(CheckpointError, match=r"model_type.*object"):
        find_encoder(tiny_checkpoint)


def test_pooling_and_prefix_of_a_folder_are_read(
    bert_folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(bert_folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text(
        '{"pooling_mode_cls_token": true}'
    )
    (tmp_path / "config_sentence_transformers.json").write_text(
        '{"prompts": {"query": "query: "}}'
    )
    found, _ = find_encoder(tmp_path)
    assert (found.first_token, found.prefix) == (True, "query: ")


@pytest.fixture(scope="module")
def encoded_checkpoint(
    tiny_checkpoint: Path,
    encoder_file: EncoderFile,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """`tiny_checkpoint` with an encoder."""
    own = load_checkpoint(tiny_checkpoint)
    weights = MeaningWeights(scanner=0.5, sentence=10, near=2, wide=1, bias=-3)
    folder = tmp_path_factory.mktemp("encoded") / "tiny"
    settings = replace(own.settings, meaning=weights)
    save_checkpoint(folder, own.model, settings, own.tokenizer, encoder=encoder_file)
    return folder


def test_logits_are_weighed_with_the_cosines(
    encoded_checkpoint: Path, tiny_scanner: Scanner
) -> None:
    scanner = Scanner.from_pretrained(encoded_checkpoint, device="cpu", dtype="float32")
    meaning = scanner.meaning
    assert meaning is not None
    units = scanner.units_of(TEXT)
    cosines = meaning.cosines(
        QUESTION, meaning.vectors([unit.model_text for unit in units])
    )
    plain = tiny_scanner.scan(QUESTION, TEXT)
    expected = meaning.weights.logits(plain.logits, cosines)
    np.testing.assert_allclose(scanner.scan(QUESTION, TEXT).logits, expected, atol=1e-5)
    assert ENCODER in scanner.checkpoint.verified


def test_without_encoder_nothing_changes(
    encoded_checkpoint: Path, tiny_scanner: Scanner
) -> None:
    scanner = Scanner.from_pretrained(
        encoded_checkpoint, device="cpu", dtype="float32", encoder=None
    )
    assert scanner.meaning is None
    assert np.array_equal(
        scanner.scan(QUESTION, TEXT).logits, tiny_scanner.scan(QUESTION, TEXT).logits
    )


def test_saved_again_it_is_the_same(encoded_checkpoint: Path, tmp_path: Path) -> None:
    own = load_checkpoint(encoded_checkpoint)
    save_checkpoint(
        tmp_path / "again",
        own.model,
        own.settings,
        own.tokenizer,
        encoder=own.encoder_file,
    )
    again = Scanner.from_pretrained(tmp_path / "again", device="cpu", dtype="float32")
    first = Scanner.from_pretrained(encoded_checkpoint, device="cpu", dtype="float32")
    assert np.array_equal(
        again.scan(QUESTION, TEXT).logits, first.scan(QUESTION, TEXT).logits
    )
    with pytest.raises(CheckpointError, match="encoder"):
        save_checkpoint(tmp_path / "none", own.model, own.settings, own.tokenizer)


def test_a_callers_encoder_takes_its_place(
    encoded_checkpoint: Path, bert_folder: Path
) -> None:
    def embed(texts: list[str]) -> list[list[float]]:
        return [[1.0, text.count("treaty"), len(text) / 100] for text in texts]

    named = Scanner.from_pretrained(
        encoded_checkpoint, device="cpu", dtype="float32", encoder=bert_folder
    )
    given = Scanner.from_pretrained(
        encoded_checkpoint, device="cpu", dtype="float32", encoder=embed
    )
    assert named.meaning is not None
    assert not named.meaning.weighed
    assert given.scan(QUESTION, TEXT).logits.argmax() == 1
    assert np.isfinite(named.scan(QUESTION, TEXT).logits).all()


def test_a_checkpoint_without_weights_takes_no_encoder(
    tiny_checkpoint: Path, bert_folder: Path
) -> None:
    with pytest.raises(CheckpointError, match="made without one"):
        Scanner.from_pretrained(tiny_checkpoint, encoder=bert_folder)


def test_a_checkpoints_encoder_is_checked(
    encoded_checkpoint: Path, tmp_path: Path
) -> None:
    shutil.copytree(encoded_checkpoint, tmp_path, dirs_exist_ok=True)
    content = bytearray((tmp_path / ENCODER).read_bytes())
    content[-1] ^= 1
    (tmp_path / ENCODER).write_bytes(content)
    with pytest.raises(CheckpointError, match=rf"{ENCODER}: its SHA-256"):
        load_checkpoint(tmp_path)
    (tmp_path / ENCODER).unlink()
    with pytest.raises(CheckpointError, match=rf"{ENCODER}: No such file"):
        load_checkpoint(tmp_path)
