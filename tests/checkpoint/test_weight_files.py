"""Which files hold the weights: one, or several that an index names."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from spscanner_rag.checkpoint.load import load_model
from spscanner_rag.checkpoint.tensor_files import read_headers
from spscanner_rag.checkpoint.weight_files import weight_files
from tests.checkpoint.conftest import refused
from tests.checkpoint.test_tensor_files import (
    TENSORS,
    write_pickled,
    write_safetensors,
    write_safetensors_shards,
)

INDEX = "model.safetensors.index.json"


@pytest.mark.parametrize(
    "shard",
    [
        "../model.safetensors",
        "/etc/passwd",
        "sub/model.safetensors",
        "..\\model.safetensors",
        "..",
        "",
        1,
        None,
        "c:model.safetensors",
    ],
)
def test_shards_stay_in_the_folder(tmp_path: Path, shard: object) -> None:
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": {"a": shard}}))
    with refused("expected the name of a file next to the index"):
        read_headers(tmp_path)


def test_an_index_of_safetensors_leads_to_no_pickle(tmp_path: Path) -> None:
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": {"a": "evil.bin"}}))
    with refused(r"expected a file that ends in \.safetensors"):
        read_headers(tmp_path)


@pytest.mark.parametrize("index", [{}, {"weight_map": []}, {"weight_map": {}}])
def test_an_index_without_a_map(tmp_path: Path, index: dict[str, Any]) -> None:
    (tmp_path / INDEX).write_text(json.dumps(index))
    with refused("no weight_map"):
        read_headers(tmp_path)


def test_an_index_that_names_too_many_files(tmp_path: Path) -> None:
    shards = {f"t{number}": f"{number}.safetensors" for number in range(10_001)}
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": shards}))
    with refused("names 10,001 files; expected at most 10,000"):
        read_headers(tmp_path)


def test_a_missing_shard(tmp_path: Path) -> None:
    write_safetensors_shards(tmp_path, TENSORS).unlink()
    with refused(r"model-00002-of-00002\.safetensors: No such file"):
        read_headers(tmp_path)


def test_an_index_and_shards_that_disagree(tmp_path: Path) -> None:
    write_safetensors_shards(tmp_path, TENSORS)
    index = tmp_path / INDEX
    promised = json.loads(index.read_text())
    promised["weight_map"]["absent"] = "model-00001-of-00002.safetensors"
    index.write_text(json.dumps(promised))
    with refused("tensor absent is missing, which the index promises"):
        read_headers(tmp_path)
    del promised["weight_map"]["absent"]
    del promised["weight_map"]["layer.mixer.D"]
    index.write_text(json.dumps(promised))
    with refused(r"tensor layer\.mixer\.D is not in the index"):
        read_headers(tmp_path)


def test_one_file_wins_over_shards_and_safetensors_over_pickles(tmp_path: Path) -> None:
    write_safetensors_shards(tmp_path, TENSORS)
    write_pickled(tmp_path, TENSORS)
    names = {path.name for path in weight_files(tmp_path)}
    assert names == {f"model-0000{n}-of-00002.safetensors" for n in (1, 2)}
    whole = write_safetensors(tmp_path, TENSORS)
    assert weight_files(tmp_path) == {whole: None}


def test_shards_of_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.Mamba2Config(
        hidden_size=32,
        num_hidden_layers=3,
        vocab_size=96,
        state_size=16,
        head_dim=8,
        num_heads=8,
        n_groups=1,
    )
    original = transformers.Mamba2ForCausalLM(config)
    original.save_pretrained(tmp_path, max_shard_size="20KB")
    assert (tmp_path / INDEX).is_file()
    assert not (tmp_path / "model.safetensors").exists()
    loaded = load_model(tmp_path, require_head=False)
    expected = original.backbone.embeddings.weight
    assert torch.equal(loaded.backbone.embedding.weight, expected)
