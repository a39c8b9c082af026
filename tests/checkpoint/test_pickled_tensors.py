"""Pickled weights: nothing but dense tensors, whole, and no more memory than the file has bytes."""

import collections
import io
import pickle
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from spscanner_rag.checkpoint.file_access import CheckpointError
from spscanner_rag.checkpoint.tensor_files import read_headers, read_tensors

HUGE = 10**11


class Calls:
    """Calls a function when it is unpickled."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.what = (function, arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        return self.what


def write(folder: Path, state: object) -> Path:
    path = folder / "pytorch_model.bin"
    torch.save(state, path)
    return path


def write_pickle(path: Path, content: bytes, **parts: bytes) -> None:
    """An archive as torch.save makes it, with this pickle in it."""
    torch.save({"a": torch.ones(2)}, path)
    with zipfile.ZipFile(path) as archive:
        whole = {name: archive.read(name) for name in archive.namelist()}
    name = next(name for name in whole if name.endswith("data.pkl"))
    with zipfile.ZipFile(path, "w") as archive:
        for part, data in (whole | {name: content}).items():
            archive.writestr(part, data)
        for suffix, data in parts.items():
            archive.writestr(name.replace("data.pkl", suffix), data)


def load(folder: Path) -> dict[str, torch.Tensor]:
    return dict(read_tensors(read_headers(folder), device="cpu", dtype=torch.float32))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (Calls(bytearray, HUGE), "bytearray"),
        (Calls(torch.Tensor, HUGE), r"torch\.Tensor|torch\._tensor"),
        (Calls(torch.UntypedStorage, HUGE), "UntypedStorage"),
        (Calls(collections.Counter, "abc"), r"collections\.Counter"),
        (
            Calls(torch._utils._rebuild_meta_tensor_no_storage, torch.float32, (2,), (1,), False),
            "meta_tensor",
        ),
        (Calls(collections.OrderedDict, [("a", 1)]), "an OrderedDict made from something else"),
    ],
    ids=lambda value: value.what[0].__name__ if isinstance(value, Calls) else "",
)
def test_a_function_that_could_fill_the_memory_is_not_called(tmp_path: Path, call: Calls, name: str) -> None:
    write(tmp_path, {"a": torch.ones(2), "b": call})
    with pytest.raises(CheckpointError, match=rf"pytorch_model\.bin: refused, .*\(.*({name})"):
        read_headers(tmp_path)


def test_meta_tensors_are_refused(tmp_path: Path) -> None:
    write(tmp_path, {"a": torch.ones(2), "b": torch.empty(2, device="meta")})
    with pytest.raises(CheckpointError, match=r"refused, .*_rebuild_meta_tensor_no_storage"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("size", "stride", "offset"),
    [((2,), (HUGE,), 0), ((HUGE,), (1,), 0), ((2,), (1,), HUGE), ((2,), (-1,), 1), ((2, 2), (1,), 0)],
)
def test_a_tensor_outside_of_its_storage(
    tmp_path: Path, size: tuple[int, ...], stride: tuple[int, ...], offset: int
) -> None:
    path = write(tmp_path, {"a": torch.ones(2)})
    rebuild = (torch._utils._rebuild_tensor_v2, (0, offset, size, stride, False, collections.OrderedDict()))

    class Pickler(pickle.Pickler):
        def persistent_id(self, value: object) -> object:
            return ("storage", torch.FloatStorage, "0", "cpu", 2) if type(value) is Place else None

    class Place:
        pass

    function, arguments = rebuild
    stream = io.BytesIO()
    Pickler(stream, 2).dump({"a": Calls(function, Place(), *arguments[1:])})
    write_pickle(path, stream.getvalue())
    with pytest.raises(CheckpointError, match=r"pytorch_model\.bin: damaged \(a tensor"):
        load(tmp_path)


def test_many_tensors_of_one_storage_claim_no_more_than_the_file(tmp_path: Path) -> None:
    whole = torch.ones(1000)
    write(tmp_path, {f"a{number}": whole[number:] for number in range(100)})
    with pytest.raises(CheckpointError, match="claims more bytes than the file's"):
        read_headers(tmp_path)


def test_a_storage_larger_than_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, {"a": torch.ones(2)})
    with zipfile.ZipFile(path) as archive:
        content = archive.read(next(name for name in archive.namelist() if name.endswith("data.pkl")))
    assert content.count(b"K\x02") == 2  # elements of the storage, and of the tensor
    write_pickle(path, content.replace(b"K\x02", b"J" + struct.pack("<i", 2**31 - 1), 1))
    with pytest.raises(CheckpointError, match="claims more bytes than the file's"):
        load(tmp_path)


@pytest.mark.parametrize("double", ["data.pkl", "Data.PKL", "other/data.pkl"])
@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
def test_no_second_pickle_goes_unchecked(tmp_path: Path, double: str) -> None:
    path = tmp_path / "pytorch_model.bin"
    write_pickle(path, pickle.dumps({}, 2), **{double: b"anything"})
    with pytest.raises(CheckpointError, match=r"pytorch_model\.bin: (damaged|no data\.pkl)"):
        read_headers(tmp_path)


def test_a_pickle_that_is_too_large(tmp_path: Path) -> None:
    path = tmp_path / "pytorch_model.bin"
    write_pickle(path, pickle.dumps({"a": "x" * 2**22}, 2))
    with pytest.raises(CheckpointError, match=r"no data\.pkl of at most 4,194,304 bytes"):
        read_headers(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x02r\xff\xff\xff\x7f.",  # a place in the memo far away
        b"\x80\x04\x96" + struct.pack("<Q", 2**40) + b".",  # a byte array of 1 TB
        b"\x80\x04\x8e" + struct.pack("<Q", 2**40) + b".",  # bytes
        b"\x80\x02(((((((((.",
        b"\x80\x02}q\x00(X\x01\x00\x00\x00ah\x00u.",  # a dict within itself
        b"",
    ],
)
def test_a_damaged_pickle_takes_no_memory(tmp_path: Path, content: bytes) -> None:
    write_pickle(tmp_path / "pytorch_model.bin", content)
    with pytest.raises(CheckpointError, match=r"pytorch_model\.bin: (damaged|entry)"):
        read_headers(tmp_path)


def test_what_training_saves_still_loads(tmp_path: Path) -> None:
    module = torch.nn.Linear(3, 2)
    state = collections.OrderedDict(module.state_dict())
    state._metadata = {"": {"version": 1}}  # type: ignore[attr-defined]
    state["parameter"] = torch.nn.Parameter(torch.arange(3.0))
    state["tied"] = state["bias"]
    write(tmp_path, state)
    tensors = load(tmp_path)
    assert torch.equal(tensors["weight"], module.weight.detach())
    assert torch.equal(tensors["parameter"], torch.arange(3.0))


LIMITED = """
import resource, sys
from pathlib import Path
from spscanner_rag.checkpoint.file_access import CheckpointError
from spscanner_rag.checkpoint.tensor_files import read_headers
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for folder in sys.argv[1:]:
    try:
        read_headers(Path(folder))
    except CheckpointError:
        pass
    else:
        sys.exit(f"{folder} was accepted")
sys.exit(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before > 200_000 and "too much memory")
"""


@pytest.mark.slow
def test_memory_of_hostile_pickles(tmp_path: Path) -> None:
    hostile = (Calls(bytearray, 10**9), Calls(torch.zeros, 10**9), Calls(bytes, 10**9))
    folders = [tmp_path / str(number) for number in range(len(hostile))]
    for folder, call in zip(folders, hostile, strict=True):
        folder.mkdir()
        write_pickle(folder / "pytorch_model.bin", pickle.dumps({"a": call}, 2))
    command = [sys.executable, "-c", LIMITED, *map(str, folders)]
    assert subprocess.run(command, check=False).returncode == 0
