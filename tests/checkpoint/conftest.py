"""A small checkpoint in our layout, and one in the published layout."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer

from spscanner_rag.checkpoint import CheckpointError, ScannerSettings, save_checkpoint
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.model import ScannerModel
from tests.lexical.tables import table_of

CONFIG = Mamba2Config(d_model=16, n_layer=2, vocab_size=384, d_state=8, headdim=8)
FILES = ["config.json", "model.safetensors", "tokenizer.json"]
COMMIT = "0123456789abcdef0123456789abcdef01234567"
SETTINGS = ScannerSettings(
    reanchor_tokens=256,
    match=True,
    prior=True,
    surroundings=True,
    training={"steps": 3},
)

SOFT = replace(SETTINGS, soft=True)
VECTORS = table_of(
    ("ship", "boat", "船"),
    np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32),
    "a model (MIT)",
)


def assert_same_weights(left: ScannerModel, right: ScannerModel) -> None:
    assert left.state_dict().keys() == right.state_dict().keys()
    for name, tensor in left.state_dict().items():
        assert torch.equal(tensor, right.state_dict()[name]), name


def outputs(model: ScannerModel, tokens: int = 40) -> torch.Tensor:
    ids = torch.arange(tokens)[None] % model.config.vocab_size
    classes = ids % 7 if model.match_embedding is not None else None
    with torch.no_grad():
        hidden, _ = model(ids, match_classes=classes)
        prior = torch.ones(tokens, model.prior_width) if model.prior_width else None
        return model.score(hidden[0], prior)


def is_float32(name: str) -> bool:
    """True for decays, time steps, and the weights that make logits."""
    return name.rpartition(".")[2] in ("A_log", "dt_bias", "D") or name.startswith(
        ("binary_head.", "lexical_prior.", "surroundings.")
    )


@contextmanager
def refused(message: str) -> Iterator[None]:
    """A `CheckpointError` whose message is one short line."""
    with pytest.raises(CheckpointError, match=message) as caught:
        yield
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 2100


def fill_cache(cache: Path, repository: str) -> Path:
    """The empty folder of a repository's commit, in a cache like the Hub client's."""
    root = cache / f"models--{repository.replace('/', '--')}"
    (root / "refs").mkdir(parents=True)
    (root / "refs" / "main").write_text(COMMIT)
    (root / "snapshots" / COMMIT).mkdir(parents=True)
    return root / "snapshots" / COMMIT


def remove_digests(folder: Path) -> None:
    """Remove a checkpoint's digests, so that its files can be changed."""
    config = json.loads((folder / "config.json").read_text())
    config.get("spscanner", {}).pop("sha256", None)
    (folder / "config.json").write_text(json.dumps(config))


@pytest.fixture
def model() -> ScannerModel:
    return ScannerModel(
        CONFIG, match_embedding=True, lexical_prior=True, surroundings=True
    )


@pytest.fixture
def folder(tmp_path: Path, model: ScannerModel, tiny_tokenizer: Tokenizer) -> Path:
    save_checkpoint(tmp_path / "ours", model, SETTINGS, tiny_tokenizer)
    return tmp_path / "ours"


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """The published layout: no "spscanner", and pickled weights with a tied head."""
    plain = ScannerModel(CONFIG)
    folder = tmp_path / "published"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG.to_dict()))
    state = plain.state_dict()
    torch.save(
        state | {"lm_head.weight": state["backbone.embedding.weight"]},
        folder / "pytorch_model.bin",
    )
    return folder


@pytest.fixture
def soft_model() -> ScannerModel:
    model = ScannerModel(
        CONFIG, match_embedding=True, lexical_prior=True, surroundings=True, soft=True
    )
    assert model.soft_match is not None
    assert model.soft_prior is not None
    torch.nn.init.normal_(model.soft_match.weight)
    torch.nn.init.normal_(model.soft_prior.weight)
    return model


@pytest.fixture
def soft(tmp_path: Path, soft_model: ScannerModel, tiny_tokenizer: Tokenizer) -> Path:
    save_checkpoint(
        tmp_path / "soft", soft_model, SOFT, tiny_tokenizer, word_vectors=VECTORS
    )
    return tmp_path / "soft"
