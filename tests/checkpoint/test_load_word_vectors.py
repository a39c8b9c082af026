"""A checkpoint's word vectors: there if the soft channel is on, refused if damaged."""

import stat
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load, save
from safetensors.torch import save as save_torch

from spscanner_rag.checkpoint import load_checkpoint, load_model, save_checkpoint
from spscanner_rag.checkpoint.file_names import WORD_VECTORS
from spscanner_rag.mamba2.model import SOFT_FEATURES, ScannerModel
from tests.checkpoint.conftest import SETTINGS, SOFT, VECTORS, refused, remove_digests


def test_a_soft_checkpoint_comes_back(soft: Path, soft_model: ScannerModel) -> None:
    loaded = load_checkpoint(soft)
    assert loaded.settings == SOFT
    assert loaded.word_vectors is not None
    assert (loaded.word_vectors.words, loaded.word_vectors.source) == (
        VECTORS.words,
        "a model (MIT)",
    )
    np.testing.assert_array_equal(loaded.word_vectors.vectors, VECTORS.vectors)
    ids = torch.arange(30)[None]
    features, prior = (
        torch.randn(1, 30, SOFT_FEATURES),
        torch.randn(30, soft_model.prior_width),
    )
    with torch.no_grad():
        got, expected = (
            m.score(m(ids, match_classes=ids % 7, match_features=features)[0][0], prior)
            for m in (loaded.model, soft_model)
        )
    assert torch.equal(got, expected)
    assert len({stat.S_IMODE(path.stat().st_mode) for path in soft.iterdir()}) == 1, (
        "none is private"
    )


def test_a_soft_channel_without_its_table_is_refused(soft: Path) -> None:
    (soft / WORD_VECTORS).unlink()
    with refused(rf"{WORD_VECTORS}: No such file"):
        load_checkpoint(soft)
    load_model(soft)  # token ids and features need no words


def test_tables_of_the_soft_channel(
    tmp_path: Path, model: ScannerModel, soft_model: ScannerModel
) -> None:
    with refused(r"no word vectors for settings with lexical\.soft True"):
        save_checkpoint(tmp_path / "new", soft_model, SOFT, None)
    with refused(r"word vectors for settings with lexical\.soft False"):
        save_checkpoint(tmp_path / "new", model, SETTINGS, None, word_vectors=VECTORS)
    with refused(r"tensor soft_\w+\.\w+: the model and its settings"):
        save_checkpoint(tmp_path / "new", model, SOFT, None, word_vectors=VECTORS)
    assert not (tmp_path / "new").exists()


DAMAGED = {
    "truncated, or not a safetensors file": lambda content: content[:-3],
    "the vector of 'boat' has length nan; expected 1": lambda content: save(
        load(content)
        | {"scales": load(content)["scales"] * np.array([1, np.nan, 1], np.float32)}
    ),
    "a tensor is BF16; expected int8": lambda _: save_torch(
        {
            name: torch.zeros(3, dtype=torch.bfloat16)
            for name in ("words", "vectors", "scales")
        }
    ),
    "arrays other; expected": lambda _: save({"other": np.ones(1)}),
}


@pytest.mark.parametrize("message", DAMAGED)
def test_a_damaged_table_is_refused_by_name(soft: Path, message: str) -> None:
    remove_digests(soft)
    (soft / WORD_VECTORS).write_bytes(
        DAMAGED[message]((soft / WORD_VECTORS).read_bytes())
    )
    with refused(f"{soft / WORD_VECTORS}: {message}"):
        load_checkpoint(soft)
