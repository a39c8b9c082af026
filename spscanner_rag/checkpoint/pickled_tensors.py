"""Read a pickled state dict, as ``torch.save`` writes it, after checking that it holds tensors and nothing else.

torch's ``weights_only`` lets no pickle run code, but some functions that it allows allocate any amount of memory,
and it does not check the file's CRC32. So `check_pickled` goes first; it calls nothing that the pickle names.
"""

import io
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from spscanner_rag.checkpoint.file_access import CheckpointError, first_line, refuse_pointer

_CRC32_BLOCK: Final = 2**20
# The names, shapes and places of tensors: a model of 1,000 layers takes less than 2 MB.
_LARGEST_PICKLE: Final = 2**22
_AGAIN: Final = "download it, or save it with torch.save, again"
_REBUILDING: Final = frozenset({"_rebuild_tensor_v2", "_rebuild_parameter", "_rebuild_parameter_with_state"})


def check_pickled(path: Path) -> None:
    """Raise `CheckpointError` for a damaged file, and for a pickle of anything but dense tensors by name."""
    refuse_pointer(path)
    if not zipfile.is_zipfile(path):
        raise CheckpointError(f"{path}: truncated, or older than torch 1.6; {_AGAIN}")
    try:
        with zipfile.ZipFile(path) as archive:
            pickled = _checked_pickle(path, archive)
        _Rehearsal(io.BytesIO(pickled), encoding="utf-8").load()
    except CheckpointError:
        raise
    except _ForeignObjectError as error:
        raise CheckpointError(
            f"{path}: refused, since it holds Python objects other than dense tensors ({first_line(error)}), which"
            " could run code or fill the memory; save the state dict alone, or as safetensors"
        ) from None
    except Exception as error:  # a damaged file can lead both libraries to raise anything
        raise CheckpointError(f"{path}: damaged ({first_line(error)}); {_AGAIN}") from None


def map_pickled(path: Path, device: str) -> dict[str, Tensor]:
    """Map the tensors of a checked file; on the device "meta" they have no values and take no memory."""
    try:
        state = torch.load(path, map_location=device, weights_only=True, mmap=True)
    except Exception as error:  # a damaged stream can lead the unpickler to raise anything
        raise CheckpointError(
            f"{path}: damaged, or not written by torch.save ({first_line(error)}); download or save it again"
        ) from None
    if not isinstance(state, dict):
        raise CheckpointError(
            f"{path}: a {type(state).__name__}; expected a state dict from names to tensors"
        )
    for name, value in state.items():
        if not isinstance(name, str) or not isinstance(value, Tensor):
            raise CheckpointError(f"{path}: entry {name!r} is a {type(value).__name__}; expected a tensor")
    return state


def _checked_pickle(path: Path, archive: zipfile.ZipFile) -> bytes:
    """The pickle of an archive, after comparing every part's CRC32: torch does not, when it maps the file."""
    parts = archive.infolist()
    if any(part.compress_type != zipfile.ZIP_STORED for part in parts):
        raise CheckpointError(f"{path}: a compressed archive, which torch.save does not write; {_AGAIN}")
    if sum(part.file_size for part in parts) > path.stat().st_size:
        raise CheckpointError(f"{path}: damaged (its parts are larger than the file); {_AGAIN}")
    # torch finds a part by its name in any case, so none may have a double that is not checked
    if len({part.filename.lower() for part in parts}) < len(parts):
        raise CheckpointError(f"{path}: damaged (two of its parts have the same name); {_AGAIN}")
    pickles = [part for part in parts if part.filename.lower().endswith("data.pkl")]
    if len(pickles) != 1 or pickles[0].file_size > _LARGEST_PICKLE:
        raise CheckpointError(
            f"{path}: no data.pkl of at most {_LARGEST_PICKLE:,} bytes in it; expected one, as torch.save"
            " writes it"
        )
    for part in parts:
        if not part.CRC:  # torch.serialization.set_crc32_options(False) writes 0 for all
            del part.CRC  # otherwise zipfile compares it
        with archive.open(part) as content:
            while content.read(_CRC32_BLOCK):
                pass
    return archive.read(pickles[0])


class _ForeignObjectError(Exception):
    """The pickle names something that no state dict of dense tensors needs."""


class _Rehearsal(pickle._Unpickler):
    """Unpickles with stand-ins: a tensor is only checked to lie within its storage.

    This is Python's own unpickler in Python, since the one in C allocates what a damaged pickle asks for.
    """

    def find_class(self, module: str, name: str) -> Callable[..., Any] | None:
        if (module, name) == ("collections", "OrderedDict"):
            return _empty_dict
        if module == "torch._utils" and name in _REBUILDING:
            return _within_storage if name == "_rebuild_tensor_v2" else _parameter
        # types of storages, and dtypes, are no functions to call
        if module == "torch" and (
            name.endswith("Storage") or isinstance(getattr(torch, name, 0), torch.dtype)
        ):
            return None
        raise _ForeignObjectError(f"{module}.{name}")

    def persistent_load(self, pid: Any) -> int:  # noqa: ANN401 - whatever the pickle holds
        """The number of elements of a storage."""
        kind, _, _, _, elements = pid
        if kind != "storage" or type(elements) is not int:
            raise _ForeignObjectError(f"persistent id {kind!r}")
        return elements


def _empty_dict(*arguments: object) -> OrderedDict[Any, Any]:
    if arguments:  # torch.save fills it afterwards
        raise _ForeignObjectError("an OrderedDict made from something else")
    return OrderedDict()


def _within_storage(
    elements: int, offset: int, size: tuple[int, ...], stride: tuple[int, ...], *_: object
) -> None:
    numbers = (elements, offset, *size, *stride)
    if not all(type(number) is int and 0 <= number < 2**63 for number in numbers) or len(size) != len(stride):
        raise ValueError("a tensor's shape is not made of whole numbers of at least 0")
    last = offset + sum((length - 1) * step for length, step in zip(size, stride, strict=True))
    if 0 not in size and last >= elements:
        raise ValueError("a tensor lies outside of its storage")


def _parameter(tensor: object, *_: object) -> object:
    return tensor
