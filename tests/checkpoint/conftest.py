"""A small checkpoint in our layout, and one in the published one."""

import json
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer

from spscanner_rag.checkpoint import ScannerSettings, save_checkpoint
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.model import ScannerModel

CONFIG = Mamba2Config(d_model=16, n_layer=2, vocab_size=384, d_state=8, headdim=8)
SETTINGS = ScannerSettings(
    reanchor_tokens=256, match=True, prior=True, surroundings=True, training={"steps": 3}
)


def remove_digests(folder: Path) -> None:
    """Make a checkpoint one without digests, so that its files can be changed."""
    config = json.loads((folder / "config.json").read_text())
    config.get("spscanner", {}).pop("sha256", None)
    (folder / "config.json").write_text(json.dumps(config))


@pytest.fixture
def model() -> ScannerModel:
    return ScannerModel(CONFIG, match_embedding=True, lexical_prior=True, surroundings=True)


@pytest.fixture
def folder(tmp_path: Path, model: ScannerModel, tiny_tokenizer: Tokenizer) -> Path:
    save_checkpoint(tmp_path / "ours", model, SETTINGS, tiny_tokenizer)
    return tmp_path / "ours"


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """The published layout: no "spscanner", a pickled state dict with the tied language-model head."""
    plain = ScannerModel(CONFIG)
    folder = tmp_path / "published"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG.to_dict()))
    state = plain.state_dict()
    torch.save(state | {"lm_head.weight": state["backbone.embedding.weight"]}, folder / "pytorch_model.bin")
    return folder
