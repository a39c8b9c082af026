"""Tensor files of both formats, whole or in shards: verified, refused, read."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from spscanner_rag.checkpoint.bounded_files import read_json
from spscanner_rag.checkpoint.tensor_files import (
    read_headers,
    read_tensors,
)
from spscanner_rag.checkpoint.tensor_headers import verify_headers
from tests.checkpoint.conftest import refused

TENSORS = {
    "backbone.embedding.weight": torch.arange(12.0).reshape(4, 3),
    "layer.mixer.A_log": torch.tensor([0.1, 0.2]),
    "layer.mixer.dt_bias": torch.tensor([0.3, 0.4]),
    "layer.mixer.D": torch.tensor([0.5, 0.6]),
    "lm_head.weight": torch.ones(4, 3),
}
SHAPES = {
    name: tuple(tensor.shape)
    for name, tensor in TENSORS.items()
    if name != "lm_head.weight"
}
WHOLE = torch.ones(1000)
LFS_POINTER = (
    "version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 12345\n"
)
Write = Callable[[Path, dict[str, Any]], Path]


def write_safetensors(folder: Path, tensors: dict[str, Any]) -> Path:
    save_file(
        {name: tensor.contiguous() for name, tensor in tensors.items()},
        folder / "model.safetensors",
    )
    return folder / "model.safetensors"


def write_pickled(folder: Path, tensors: dict[str, Any]) -> Path:
    torch.save(tensors, folder / "pytorch_model.bin")
    return folder / "pytorch_model.bin"


def write_shards(
    folder: Path, tensors: dict[str, Any], writer: Write, name: str
) -> Path:
    """Write weights in two files, with an index; return the second."""
    stem, _, ending = name.rpartition(".")
    weight_map = {}
    shard = folder / f"{stem}-00001-of-00002.{ending}"
    for number, names in enumerate((list(tensors)[:2], list(tensors)[2:]), 1):
        shard = folder / f"{stem}-0000{number}-of-00002.{ending}"
        weight_map |= dict.fromkeys(names, shard.name)
        writer(folder, {name: tensors[name] for name in names}).rename(shard)
    index = folder / f"{name}.index.json"
    index.write_text(json.dumps({"weight_map": weight_map}))
    return shard


def write_safetensors_shards(folder: Path, tensors: dict[str, Any]) -> Path:
    return write_shards(folder, tensors, write_safetensors, "model.safetensors")


def write_pickled_shards(folder: Path, tensors: dict[str, Any]) -> Path:
    return write_shards(folder, tensors, write_pickled, "pytorch_model.bin")


@pytest.fixture(
    params=[
        write_safetensors,
        write_pickled,
        write_safetensors_shards,
        write_pickled_shards,
    ]
)
def write(request: pytest.FixtureRequest) -> Write:
    function: Write = request.param
    return function


def load(folder: Path, dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    headers = read_headers(folder)
    verify_headers(headers, SHAPES, folder)
    return dict(read_tensors(headers, device="cpu", dtype=dtype))


@pytest.mark.parametrize(
    ("stored", "dtype"),
    [
        *((torch.float32, dtype) for dtype in (torch.float32, torch.bfloat16)),
        *(
            (stored, torch.float32)
            for stored in (torch.float64, torch.float16, torch.bfloat16)
        ),
    ],
)
def test_tensors_as_written(
    tmp_path: Path, write: Write, stored: torch.dtype, dtype: torch.dtype
) -> None:
    write(tmp_path, {name: tensor.to(stored) for name, tensor in TENSORS.items()})
    tensors = load(tmp_path, dtype)
    assert set(tensors) == set(SHAPES)
    for name, tensor in tensors.items():
        assert tensor.dtype == (dtype if "embedding" in name else torch.float32)
        assert torch.equal(tensor.float(), TENSORS[name].to(stored).float())


def test_tied_and_transposed_tensors_of_torch(tmp_path: Path) -> None:
    embedding = torch.arange(12.0).reshape(3, 4).T  # (4, 3), not contiguous
    write_pickled(
        tmp_path,
        TENSORS | {"backbone.embedding.weight": embedding, "lm_head.weight": embedding},
    )
    assert torch.equal(load(tmp_path)["backbone.embedding.weight"], embedding)


def test_names_are_those_of_the_model_and_each_is_one_tensor(
    tmp_path: Path, write: Write
) -> None:
    write(tmp_path, TENSORS)
    headers = read_headers(tmp_path, lambda name: f"x.{name}")
    assert headers["x.layer.mixer.D"].stored_name == "layer.mixer.D"
    found = dict(read_tensors(headers, device="cpu", dtype=torch.float32))
    assert torch.equal(found["x.layer.mixer.D"], TENSORS["layer.mixer.D"])
    with refused(r"tensors \S+ and \S+ are both same"):
        read_headers(tmp_path, lambda name: "same")


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"layer.mixer.extra": torch.ones(2)}, "has no place"),
        ({"layer.mixer.D": torch.ones(3)}, r"has shape \[3\].*\[2\]"),
        ({"layer.mixer.D": torch.ones(2, dtype=torch.int8)}, r"is \w+; expected"),
        *(
            ({"layer.mixer.D": torch.tensor([value, 1.0])}, "holds NaN or infinity")
            for value in (float("nan"), -float("inf"))
        ),
        (
            {"layer.mixer.D": torch.tensor([-2e6, 1.0])},
            "holds a weight of size .*, which no training makes",
        ),
    ],
)
def test_refused_tensors(
    tmp_path: Path, write: Write, tensors: dict[str, Tensor], message: str
) -> None:
    path = write(tmp_path, TENSORS | tensors)
    with refused(rf"{path.name}: tensor {next(iter(tensors))} {message}"):
        load(tmp_path)


def test_headers_are_checked_before_any_tensor_is_read(
    tmp_path: Path, write: Write
) -> None:
    unreadable = {
        name: torch.full_like(tensor, torch.nan) for name, tensor in TENSORS.items()
    }
    write(tmp_path, unreadable | {"layer.mixer.D": torch.ones(3)})
    with refused("has shape"):
        load(tmp_path)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.999])
def test_truncated(tmp_path: Path, write: Write, share: float) -> None:
    path = write(tmp_path, TENSORS)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with refused(f"{path.name}: truncated"):
        load(tmp_path)
    path.write_text(LFS_POINTER)
    with refused(f"{path.name}: a git-LFS pointer.*git lfs pull"):
        read_headers(tmp_path)


def test_no_weights(tmp_path: Path) -> None:
    with refused(
        r"no weights there; expected model\.safetensors or pytorch_model\.bin"
    ):
        read_headers(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\udc80", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("null", "a JSON NoneType; expected an object"),
        (LFS_POINTER, "a git-LFS pointer"),
    ],
)
def test_no_json_object(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with refused(f"{path}: {message}"):
        read_json(path)
