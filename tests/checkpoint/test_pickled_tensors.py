"""A pickle of weights may hold dense tensors alone, and is checked before reading."""

import collections
import io
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from spscanner_rag.checkpoint.errors import CheckpointError
from spscanner_rag.checkpoint.tensor_files import read_headers, read_tensors
from tests.checkpoint.conftest import refused
from tests.checkpoint.test_tensor_files import (
    SHAPES,
    TENSORS,
    WHOLE,
    load,
    write_pickled,
)


class Calls:
    """Calls a function when it is unpickled."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.what = (function, arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        return self.what


def test_a_pickle_runs_nothing(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    path = write_pickled(tmp_path, TENSORS | {"evil": Calls(Path.touch, trace)})
    with refused(r"pytorch_model\.bin: refused, since it holds Python objects"):
        read_headers(tmp_path)
    assert not trace.exists()
    torch.load(path, weights_only=False)  # the file does contain the intruder
    assert trace.exists()


def test_what_is_no_archive(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    (tmp_path / "pytorch_model.bin").write_bytes(pickle.dumps(Calls(Path.touch, trace)))
    with refused(r"older than torch 1\.6; download it, or save it with torch\.save"):
        read_headers(tmp_path)
    assert not trace.exists()
    torch.save(
        TENSORS, tmp_path / "pytorch_model.bin", _use_new_zipfile_serialization=False
    )
    with refused(r"older than torch 1\.6"):
        read_headers(tmp_path)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ([torch.ones(1)], "a list; expected a state dict"),
        ({"model": dict(TENSORS)}, "entry 'model' is a dict; expected a tensor"),
        ({1: torch.ones(1)}, "entry 1 is a Tensor"),
        ({"epoch": 3}, "entry 'epoch' is a int"),
        ({"a": torch.ones(2).to_sparse()}, "refused, .*_rebuild_sparse_tensor"),
        (
            {"a": torch.empty(2, device="meta")},
            "refused, .*_rebuild_meta_tensor_no_storage",
        ),
        (
            {"huge": torch.ones(1).expand(10**9)},
            "tensor huge claims more bytes than the file's",
        ),
        (
            # all share one storage
            {f"a{number}": WHOLE[number:] for number in range(100)},
            "claims more bytes than the file's",
        ),
    ],
)
def test_a_pickle_of_anything_but_whole_dense_tensors(
    tmp_path: Path, state: Any, message: str
) -> None:
    write_pickled(tmp_path, state)
    with refused(message):
        read_headers(tmp_path)


def test_every_flipped_bit_of_a_pickle_is_found(tmp_path: Path) -> None:
    path = write_pickled(tmp_path, TENSORS)
    whole = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        parts = [part for part in archive.infolist() if "/data/" in part.filename]
    assert len(parts) == len(TENSORS)
    for part in parts:
        name_size, extra_size = struct.unpack_from(
            "<HH", whole, part.header_offset + 26
        )
        start = part.header_offset + 30 + name_size + extra_size
        for at in (start, start + part.file_size - 1):
            damaged = bytearray(whole)
            damaged[at] ^= 1
            path.write_bytes(damaged)
            with pytest.raises(
                CheckpointError,
                match=r"pytorch_model\.bin: damaged \(Bad CRC-32 for file .*again",
            ):
                load(tmp_path)
    path.write_bytes(whole)
    load(tmp_path)


def test_a_pickle_without_crc32_loads(tmp_path: Path) -> None:
    before = torch.serialization.get_crc32_options()
    torch.serialization.set_crc32_options(False)
    try:
        write_pickled(tmp_path, TENSORS)
    finally:
        torch.serialization.set_crc32_options(before)
    assert len(load(tmp_path)) == len(SHAPES)


HUGE = 10**11


def write_pickle(path: Path, content: bytes, **parts: bytes) -> None:
    """An archive like those of torch.save, with this pickle in it."""
    torch.save({"a": torch.ones(2)}, path)
    with zipfile.ZipFile(path) as archive:
        whole = {name: archive.read(name) for name in archive.namelist()}
    name = next(name for name in whole if name.endswith("data.pkl"))
    with zipfile.ZipFile(path, "w") as archive:
        for part, data in (whole | {name: content}).items():
            archive.writestr(part, data)
        for suffix, data in parts.items():
            archive.writestr(name.replace("data.pkl", suffix), data)


def read_all(folder: Path) -> dict[str, torch.Tensor]:
    return dict(read_tensors(read_headers(folder), device="cpu", dtype=torch.float32))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (Calls(bytearray, HUGE), "bytearray"),
        (Calls(torch.Tensor, HUGE), r"torch\.Tensor|torch\._tensor"),
        (Calls(torch.UntypedStorage, HUGE), "UntypedStorage"),
        (Calls(collections.Counter, "abc"), r"collections\.Counter"),
        (
            Calls(
                torch._utils._rebuild_meta_tensor_no_storage,
                torch.float32,
                (2,),
                (1,),
                False,
            ),
            "meta_tensor",
        ),
        (
            Calls(collections.OrderedDict, [("a", 1)]),
            "an OrderedDict made from something else",
        ),
    ],
    ids=lambda value: value.what[0].__name__ if isinstance(value, Calls) else "",
)
def test_a_function_that_could_fill_the_memory_is_not_called(
    tmp_path: Path, call: Calls, name: str
) -> None:
    write_pickled(tmp_path, {"a": torch.ones(2), "b": call})
    with pytest.raises(
        CheckpointError, match=rf"pytorch_model\.bin: refused, .*\(.*({name})"
    ):
        read_headers(tmp_path)


@pytest.mark.parametrize(
    ("elements", "size", "stride", "offset", "fault"),
    [
        (2, (2,), (HUGE,), 0, "claims more bytes"),
        (2, (HUGE,), (1,), 0, "claims more bytes"),
        (2, (2,), (1,), HUGE, "claims more bytes"),
        (2, (2,), (-1,), 1, "damaged"),
        (2, (2, 2), (1,), 0, "damaged"),
        (2, (9,), (1,), 0, "damaged"),
        # a million of them, which many tensors share
        (
            2,
            (1,) * 9,
            (1,) * 9,
            0,
            "a tensor of 9 dimensions",
        ),
        ([1, 2], (2,), (1,), 0, "persistent id 'storage'"),  # torch would copy the list
    ],
)
def test_shapes_that_are_none(
    tmp_path: Path,
    elements: Any,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    fault: str,
) -> None:
    class Place:
        pass

    class Pickler(pickle.Pickler):
        def persistent_id(self, value: object) -> object:
            return (
                ("storage", torch.FloatStorage, "0", "cpu", elements)
                if type(value) is Place
                else None
            )

    arguments = Place(), offset, size, stride, False, collections.OrderedDict()
    stream = io.BytesIO()
    Pickler(stream, 2).dump({"a": Calls(torch._utils._rebuild_tensor_v2, *arguments)})
    write_pickle(tmp_path / "pytorch_model.bin", stream.getvalue())
    with refused(rf"pytorch_model\.bin: .*({fault})"):
        read_all(tmp_path)


def test_a_storage_larger_than_the_file(tmp_path: Path) -> None:
    path = write_pickled(tmp_path, {"a": torch.ones(2)})
    with zipfile.ZipFile(path) as archive:
        content = archive.read(
            next(name for name in archive.namelist() if name.endswith("data.pkl"))
        )
    assert content.count(b"K\x02") == 2  # elements of the storage and of the tensor
    write_pickle(
        path, content.replace(b"K\x02", b"J" + struct.pack("<i", 2**31 - 1), 1)
    )
    with refused("claims more bytes than the file's"):
        read_all(tmp_path)


def test_a_compressed_pickle_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pytorch_model.bin"
    write_pickle(path, pickle.dumps({}, 2))
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("more", b"0" * 1000)
    with refused(r"pytorch_model\.bin: damaged \(a compressed part.*again"):
        read_headers(tmp_path)


@pytest.mark.parametrize("double", ["data.pkl", "Data.PKL", "other/data.pkl"])
@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
def test_no_second_pickle_goes_unchecked(tmp_path: Path, double: str) -> None:
    path = tmp_path / "pytorch_model.bin"
    write_pickle(path, pickle.dumps({}, 2), **{double: b"anything"})
    with refused(r"pytorch_model\.bin: (damaged|no data\.pkl)"):
        read_headers(tmp_path)


def test_a_pickle_that_is_too_large(tmp_path: Path) -> None:
    path = tmp_path / "pytorch_model.bin"
    write_pickle(path, pickle.dumps({"a": "x" * 2**22}, 2))
    with refused(r"no data\.pkl of at most 4,194,304 bytes"):
        read_headers(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x02r\xff\xff\xff\x7f.",  # a distant place in the memo
        b"\x80\x04\x96" + struct.pack("<Q", 2**40) + b".",  # a byte array of 1 TB
        b"\x80\x04\x8e" + struct.pack("<Q", 2**40) + b".",  # bytes
        b"\x80\x02(((((((((.",
        b"\x80\x02}q\x00(X\x01\x00\x00\x00ah\x00u.",  # a dict that contains itself
        b"",
    ],
)
def test_a_damaged_pickle_takes_no_memory(tmp_path: Path, content: bytes) -> None:
    write_pickle(tmp_path / "pytorch_model.bin", content)
    with refused(r"pytorch_model\.bin: (damaged|entry)"):
        read_headers(tmp_path)


def test_what_training_saves_still_loads(tmp_path: Path) -> None:
    state = torch.nn.Linear(3, 2).state_dict()  # with torch's words about its version
    state["parameter"] = torch.nn.Parameter(torch.arange(3.0))
    state["tied"] = state["bias"]
    write_pickled(tmp_path, state)
    assert torch.equal(read_all(tmp_path)["parameter"], torch.arange(3.0))
