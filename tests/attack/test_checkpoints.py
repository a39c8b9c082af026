"""Damaged and hostile checkpoints are refused in one line.

Without digests they may be read, but without a raw error.
"""

import hashlib
import json
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer

from spscanner_rag.checkpoint import (
    Checkpoint,
    CheckpointError,
    ScannerSettings,
    load_checkpoint,
    save_checkpoint,
)
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.scanner import Scanner
from tests.attack.conftest import Attempt, assert_one_line
from tests.attack.damages import (
    CONFIG,
    OTHER,
    TABLE,
    TOKENIZER,
    Damage,
    byte_damages,
    exchange_digests,
    json_damages,
)
from tests.attack.tensor_damages import tensor_damages
from tests.lexical.tables import table_of

MODEL = Mamba2Config(d_model=16, n_layer=2, vocab_size=384, d_state=8, headdim=8)
SETTINGS = ScannerSettings(
    reanchor_tokens=64,
    match=True,
    prior=True,
    surroundings=True,
    soft=True,
    training={"steps": 3},
)
TEXT = "The keeper signed the treaty. He left with 3 ships. Who saw it?"

OURS = (
    byte_damages(CONFIG, "model.safetensors", TOKENIZER, TABLE)
    | json_damages()
    | tensor_damages()
)
OURS["exchange_digests"] = exchange_digests
PUBLISHED = (
    byte_damages(CONFIG, "pytorch_model.bin", TOKENIZER)
    | json_damages()
    | tensor_damages()
)

pytestmark = pytest.mark.timeout(120)
TRIES = pytest.mark.parametrize("tries", [1, pytest.param(25, marks=pytest.mark.slow)])


def save_ours(folder: Path, tokenizer: Tokenizer, seed: int) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = ScannerModel(
            MODEL,
            match_embedding=True,
            lexical_prior=True,
            surroundings=True,
            soft=True,
        )
        vectors = table_of(("ship", "boat"), torch.rand(2, 3).numpy(), "a model (MIT)")
    settings = replace(SETTINGS, training={"steps": seed})
    save_checkpoint(folder, model, settings, tokenizer, word_vectors=vectors)


def save_published(folder: Path, tokenizer: Tokenizer, seed: int) -> None:
    folder.mkdir()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        state = ScannerModel(MODEL).state_dict()
    torch.save(
        state | {"lm_head.weight": state["backbone.embedding.weight"]},
        folder / "pytorch_model.bin",
    )
    (folder / CONFIG).write_text(json.dumps(MODEL.to_dict()))
    tokenizer.save(str(folder / TOKENIZER))


def pair(
    folder: Path, tokenizer: Tokenizer, save: Callable[[Path, Tokenizer, int], None]
) -> Path:
    """An intact checkpoint, and another with other weights and tokenizer."""
    save(folder / "intact", tokenizer, 1)
    parsed = json.loads(tokenizer.to_str())
    vocabulary = parsed["model"]["vocab"]
    vocabulary["a"], vocabulary["b"] = vocabulary["b"], vocabulary["a"]
    save(folder / OTHER, Tokenizer.from_str(json.dumps(parsed)), 2)
    return folder / "intact"


@pytest.fixture(scope="module")
def ours(tiny_tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pair(tmp_path_factory.mktemp("ours"), tiny_tokenizer, save_ours)


@pytest.fixture(scope="module")
def published(
    tiny_tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    return pair(tmp_path_factory.mktemp("published"), tiny_tokenizer, save_published)


def content(loaded: Checkpoint) -> str:
    """Everything in a checkpoint that affects a score."""
    digest = hashlib.sha256(f"{loaded.model.config} {loaded.settings}".encode())
    for name, tensor in sorted(loaded.model.state_dict().items()):
        digest.update(name.encode() + tensor.contiguous().numpy().tobytes())
    digest.update(loaded.tokenizer.to_str().encode())
    if loaded.word_vectors is not None:
        for name, array in sorted(loaded.word_vectors.to_arrays().items()):
            digest.update(name.encode() + array.tobytes())
    return digest.hexdigest()


def damaged(intact: Path, damage: Damage, seed: int) -> Path:
    folder = intact.parent / "damaged"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(intact, folder)
    damage(folder, random.Random(seed))
    return folder


def load(folder: Path) -> Checkpoint | None:
    """The checkpoint, or None if it was refused in one line that names its folder."""
    try:
        return load_checkpoint(folder)
    except CheckpointError as error:
        assert_one_line(str(error), folder)
        return None
    finally:
        assert not (folder / "code-ran").exists()


@TRIES
@pytest.mark.parametrize("name", OURS)
def test_what_has_digests_is_itself_or_refused(
    name: str, tries: int, ours: Path, attempt: Attempt
) -> None:
    intact = content(load_checkpoint(ours))
    for seed in range(tries):
        with attempt(f"our layout: {name}"):
            folder = damaged(ours, OURS[name], seed)
            loaded = load(folder)
            assert loaded is None or content(loaded) == intact, seed


@TRIES
@pytest.mark.parametrize("name", PUBLISHED)
def test_what_has_no_digests_is_read_or_refused(
    name: str, tries: int, published: Path, attempt: Attempt
) -> None:
    for seed in range(tries):
        with attempt(f"published layout: {name}"):
            folder = damaged(published, PUBLISHED[name], seed)
            loaded = load(folder)
            if loaded is not None:
                try:  # a result has finite logits, or there is no result
                    Scanner(loaded).scan("Who signed it?", TEXT)
                except ValueError as error:
                    assert_one_line(str(error))
