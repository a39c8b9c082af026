"""Read tensor files: first their headers, to verify them, then one tensor at a time.

Nothing large is allocated before names, shapes and dtypes are known to be those of the
model. With ``weights_only`` torch lets no pickle run code, but some functions that it
allows can allocate any amount of memory, and it checks no CRC32. So a pickle is first
read with stand-ins, which call nothing that it names.
"""

import io
import math
import os
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import safe_open
from torch import Tensor

from spscanner_rag.checkpoint.file_access import (
    PICKLED,
    SAFETENSORS,
    CheckpointError,
    faults_of,
    open_file,
)
from spscanner_rag.text.escaping import first_line

LARGEST_WEIGHT: Final = 1e6
"""No weight of a trained model comes near this; a flipped bit in an exponent makes
1e10 to 1e38."""

_FLOATS: Final = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
}
_FORMATS: Final = (SAFETENSORS, PICKLED)
_UNUSED: Final = frozenset({"lm_head.weight"})
_FLOAT32_PARAMETERS: Final = frozenset({"A_log", "dt_bias", "D"})
# These compute logits, in float32, and calibration scales them: rounding would change
# the ranking.
_FLOAT32_MODULES: Final = frozenset(
    {"binary_head", "lexical_prior", "surroundings", "soft_prior"}
)


@dataclass(frozen=True, slots=True)
class TensorHeader:
    """One tensor of a file, before it is read.

    ``readable`` if it is dense and floating-point.
    """

    file: Path
    stored_name: str
    shape: tuple[int, ...]
    dtype: str
    readable: bool


def read_headers(
    folder: Path, rename: Callable[[str], str] = str
) -> dict[str, TensorHeader]:
    """The tensors of a folder: ``model.safetensors``, else ``pytorch_model.bin``, renamed."""
    # The first name that exists decides: a damaged file is refused, and the next format
    # is not tried.
    name = next((name for name in _FORMATS if os.path.lexists(folder / name)), None)
    if name is None:
        raise CheckpointError(
            f"{folder}: no weights there; expected {SAFETENSORS} or {PICKLED}, in one"
            " file"
        )
    read = _pickled_headers if name == PICKLED else _safetensors_headers
    headers: dict[str, TensorHeader] = {}
    for header in read(folder / name):
        name = rename(header.stored_name)
        if name in headers:
            raise CheckpointError(
                f"{header.file}: tensors {headers[name].stored_name} and"
                f" {header.stored_name} are both {name}"
            )
        headers[name] = header
    return headers


def verify_headers(
    headers: Mapping[str, TensorHeader],
    expected: Mapping[str, tuple[int, ...]],
    folder: Path,
) -> None:
    """Check that a checkpoint has exactly the expected tensors, by name and shape, besides ``lm_head.weight``."""
    unseen = dict(headers)
    for name, shape in expected.items():
        header = unseen.pop(name, None)
        if header is None:
            raise CheckpointError(
                f"{folder}: tensor {name} is missing; expected it with shape"
                f" {list(shape)}"
            )
        where = f"{header.file}: tensor {header.stored_name}"
        if header.shape != shape:
            raise CheckpointError(
                f"{where} has shape {list(header.shape)}; config.json asks for"
                f" {list(shape)}"
            )
        if not header.readable:
            raise CheckpointError(
                f"{where} is {header.dtype}; expected dense float64, float32, float16"
                " or bfloat16"
            )
    extra = [header for name, header in unseen.items() if name not in _UNUSED]
    if extra:
        raise CheckpointError(
            f"{extra[0].file}: tensor {extra[0].stored_name} has no place in the model"
            " of config.json"
        )


def read_tensors(
    headers: Mapping[str, TensorHeader],
    *,
    device: torch.device | str,
    dtype: torch.dtype,
) -> Iterator[tuple[str, Tensor]]:
    """Yield names and verified copies one by one, in `stored_dtype`, without ``lm_head.weight``."""
    wanted = {name: header for name, header in headers.items() if name not in _UNUSED}
    for name, tensor in _stored_tensors(wanted):
        target = stored_dtype(name, dtype)
        refuse_absurd(
            tensor, f"{wanted[name].file}: tensor {wanted[name].stored_name}", target
        )
        yield name, tensor.to(device=device, dtype=target, copy=True)


def stored_dtype(name: str, dtype: torch.dtype) -> torch.dtype:
    """Return the dtype of a tensor in a model of this dtype: decays, time steps and the head stay float32."""
    module, _, parameter = name.rpartition(".")
    is_float32 = module in _FLOAT32_MODULES or parameter in _FLOAT32_PARAMETERS
    return torch.float32 if is_float32 else dtype


def refuse_absurd(tensor: Tensor, where: str, target: torch.dtype) -> None:
    """Refuse NaN, infinity, weights that no training makes, and those too large for ``target``."""
    least, most = (float(extreme) for extreme in torch.aminmax(tensor))
    largest = max(-least, most)
    if not (math.isfinite(least) and math.isfinite(most)):
        raise CheckpointError(f"{where} holds NaN or infinity; expected finite weights")
    if largest > LARGEST_WEIGHT:
        raise CheckpointError(
            f"{where} holds a weight of size {largest:.3g}, which no training makes:"
            f" the file is damaged; expected at most {LARGEST_WEIGHT:.0g}; download or"
            " save the checkpoint again"
        )
    if largest > torch.finfo(target).max:
        raise CheckpointError(
            f"{where} holds a weight of size {largest:.3g}, too large for"
            f" {str(target).removeprefix('torch.')}; use float32 or bfloat16"
        )


def _safetensors_headers(path: Path) -> Iterator[TensorHeader]:
    """Headers of one safetensors file.

    The library checks them against the length of the file.
    """
    again = "; download or save it again"
    with (
        open_file(path),
        faults_of(path, again),
        safe_open(path, framework="pt") as file,
    ):
        for name in file.keys():  # noqa: SIM118
            part = file.get_slice(name)
            dtype = part.get_dtype()
            yield TensorHeader(
                path, name, tuple(part.get_shape()), dtype, dtype in _FLOATS
            )


def _pickled_headers(path: Path) -> Iterator[TensorHeader]:
    """Headers of a pickled state dict, from tensors on the meta device, which have no storage."""
    check_pickled(path)
    size = path.stat().st_size
    total = 0
    for name, tensor in map_pickled(path, "meta").items():
        claimed = tensor.numel() * tensor.element_size()
        total += 0 if name in _UNUSED else claimed
        # a tied head shares the storage of the embedding; no other two tensors share
        # one
        if max(claimed, total, tensor.untyped_storage().nbytes()) > size:
            raise CheckpointError(
                f"{path}: tensor {name} claims more bytes than the file's {size}"
            )
        readable = tensor.layout == torch.strided and tensor.dtype in _FLOATS.values()
        dtype = str(tensor.dtype).removeprefix("torch.")
        yield TensorHeader(path, name, tuple(tensor.shape), dtype, readable)


def _stored_tensors(
    headers: Mapping[str, TensorHeader],
) -> Iterator[tuple[str, Tensor]]:
    """Yield each name and tensor, mapped from the one file, which is not read as a whole."""
    for path in {header.file for header in headers.values()}:
        if path.name == PICKLED:
            stored = map_pickled(path, "cpu")
            yield from (
                (name, stored[header.stored_name].detach())
                for name, header in headers.items()
            )
            continue
        with safe_open(path, framework="pt") as file:
            yield from (
                (name, file.get_tensor(header.stored_name))
                for name, header in headers.items()
            )


# The names, shapes and places of tensors: a model of 1,000 layers takes less than 2 MB.
_LARGEST_PICKLE: Final = 2**22
_AGAIN: Final = "download it, or save it with torch.save, again"


def check_pickled(path: Path) -> None:
    """Raise `CheckpointError` for a damaged file, or a pickle of anything but a dictionary of dense tensors."""
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
    except (
        Exception
    ) as error:  # a damaged file can lead both libraries to raise anything
        raise CheckpointError(
            f"{path}: damaged ({first_line(error)}); {_AGAIN}"
        ) from None


def map_pickled(path: Path, device: str) -> dict[str, Tensor]:
    """Map the tensors of a checked file.

    On the device "meta" they have no values and take no memory.
    """
    try:
        state = torch.load(path, map_location=device, weights_only=True, mmap=True)
    except (
        Exception
    ) as error:  # a damaged stream can lead the unpickler to raise anything
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
    """The pickle of an archive, after checking every part's CRC32, which torch does not when it maps the file."""
    parts = archive.infolist()
    names = {
        part.filename.lower() for part in parts
    }  # torch finds a part by its name in any case
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
        if (
            not part.CRC
        ):  # torch.serialization.set_crc32_options(False) writes 0 for all
            del part.CRC  # otherwise zipfile compares it
        with archive.open(part) as content:
            while content.read(2**20):
                pass
    return archive.read(pickles[0])


class _ForeignObjectError(Exception):
    """The pickle names an object that no state dict of dense tensors needs."""


class _Rehearsal(pickle._Unpickler):
    """Unpickles with stand-ins, in Python, since C allocates what a damaged pickle asks for."""

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
    if (
        arguments
    ):  # torch.save fills it afterwards; copies of a large one could fill the memory
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
