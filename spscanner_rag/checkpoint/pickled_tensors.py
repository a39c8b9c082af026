"""Check pickled weights before torch reads them, and map their tensors.

With ``weights_only`` torch lets no pickle run code, but some functions that it allows
can allocate any amount of memory, and it checks no CRC32. So a pickle is first read
with stand-ins, which call nothing that it names.
"""

import io
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Sized
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from spscanner_rag.checkpoint.bounded_files import open_file
from spscanner_rag.checkpoint.errors import CheckpointError
from spscanner_rag.text.escaping import first_line

# The names, shapes and places of tensors: a model of 1,000 layers takes less than 2 MB.
_LARGEST_PICKLE: Final = 2**22
_AGAIN: Final = "download it, or save it with torch.save, again"


def check_pickled(path: Path) -> None:
    """Raise `CheckpointError` for anything but a dictionary of dense tensors.

    A damaged file is refused as well.
    """
    with open_file(path) as file:
        if not zipfile.is_zipfile(file):
            raise CheckpointError(
                f"{path}: truncated, or older than torch 1.6; {_AGAIN}"
            )
    try:
        with zipfile.ZipFile(path) as archive:
            pickled = _checked_pickle(archive, path.stat().st_size)
        _Rehearsal(io.BytesIO(pickled), encoding="utf-8").load()
    except _ForeignObjectError as error:
        raise CheckpointError(
            f"{path}: refused, since it holds Python objects other than dense tensors"
            f" ({first_line(error)}), which could run code or fill the memory; save the"
            " state dict alone, or as safetensors"
        ) from None
    except Exception as error:
        # a damaged file can lead both libraries to raise anything
        raise CheckpointError(
            f"{path}: damaged ({first_line(error)}); {_AGAIN}"
        ) from None


def map_pickled(path: Path, device: str) -> dict[str, Tensor]:
    """Map the tensors of a checked file.

    On the device "meta" they have no values and take no memory.
    """
    try:
        state = torch.load(path, map_location=device, weights_only=True, mmap=True)
    except Exception as error:
        # a damaged stream can lead the unpickler to raise anything
        raise CheckpointError(
            f"{path}: damaged ({first_line(error)}); {_AGAIN}"
        ) from None
    if not isinstance(state, dict):
        raise CheckpointError(
            f"{path}: a {type(state).__name__}; expected a state dict from names to"
            " tensors"
        )
    for name, value in state.items():
        if not isinstance(name, str) or not isinstance(value, Tensor):
            raise CheckpointError(
                f"{path}: entry {name!r} is a {type(value).__name__}; expected a tensor"
            )
    return state


def _checked_pickle(archive: zipfile.ZipFile, size: int) -> bytes:
    """The pickle of an archive, after checking every part's CRC32.

    torch does not check it when it maps the file.
    """
    parts = archive.infolist()
    # torch finds a part by its name in any case
    names = {part.filename.lower() for part in parts}
    pickles = [part for part in parts if part.filename.lower().endswith("data.pkl")]
    for wrong, fault in (
        (
            any(part.compress_type != zipfile.ZIP_STORED for part in parts),
            "a compressed part",
        ),
        (sum(part.file_size for part in parts) > size, "parts larger than the file"),
        (len(names) < len(parts), "two parts of one name"),
        (
            len(pickles) != 1 or pickles[0].file_size > _LARGEST_PICKLE,
            f"no data.pkl of at most {_LARGEST_PICKLE:,} bytes in it",
        ),
    ):
        if wrong:
            raise ValueError(fault)
    for part in parts:
        # torch.serialization.set_crc32_options(False) writes 0 for all
        if not part.CRC:
            del part.CRC  # otherwise zipfile compares it
        with archive.open(part) as content:
            while content.read(2**20):
                pass
    return archive.read(pickles[0])


class _ForeignObjectError(Exception):
    """The pickle names an object that no state dict of dense tensors needs."""


# The public class is C's, which allocates what a damaged pickle asks for.
class _Rehearsal(pickle._Unpickler):  # noqa: SLF001
    """Unpickles with stand-ins, in Python.

    C would allocate what a damaged pickle asks for.
    """

    def find_class(self, module: str, name: str) -> Callable[..., Any] | None:
        if (stand_in := _STAND_INS.get(f"{module}.{name}")) is not None:
            return stand_in
        # storage types and dtypes are not called
        if module == "torch" and (
            name.endswith("Storage") or isinstance(getattr(torch, name, 0), torch.dtype)
        ):
            return None
        raise _ForeignObjectError(f"{module}.{name}")

    def persistent_load(self, pid: Any) -> None:  # noqa: ANN401 - whatever the pickle holds
        """Check a storage: torch would copy it if its size were a list of numbers."""
        kind, _, _, _, elements = pid
        if kind != "storage" or type(elements) is not int:
            raise _ForeignObjectError(f"persistent id {kind!r}")


def _empty_dict(*arguments: object) -> OrderedDict[Any, Any]:
    # torch.save fills it afterwards; copies of a large one could fill the memory
    if arguments:
        raise _ForeignObjectError("an OrderedDict made from something else")
    return OrderedDict()


def _few_dimensions(storage: object, offset: object, size: Sized, *_: object) -> None:
    if len(size) > 8:  # torch itself finds a tensor outside of its storage
        raise ValueError(f"a tensor of {len(size):,} dimensions")


_STAND_INS: Final[dict[str, Callable[..., Any]]] = {
    "collections.OrderedDict": _empty_dict,
    "torch._utils._rebuild_tensor_v2": _few_dimensions,
    "torch._utils._rebuild_parameter": lambda tensor, *_: tensor,
    "torch._utils._rebuild_parameter_with_state": lambda tensor, *_: tensor,
}
