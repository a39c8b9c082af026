"""Read tensor files: first their headers, to verify them, then one tensor at a time.

Only tensors are unpickled, and nothing large is allocated before names, shapes and dtypes are known to be those
of the model. All functions raise `CheckpointError` for invalid files or tensors.
"""

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from spscanner_rag.checkpoint.file_access import CheckpointError, first_line, read_json, refuse_pointer
from spscanner_rag.checkpoint.pickled_tensors import check_pickled, map_pickled

SAFETENSORS: Final = "model.safetensors"
SAFETENSORS_INDEX: Final = "model.safetensors.index.json"
PICKLED: Final = "pytorch_model.bin"

LARGEST_WEIGHT: Final = 1e6
"""No weight of a trained model comes near; a flipped bit of an exponent makes 1e10 to 1e38."""

_FLOATS: Final = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
_UNUSED: Final = frozenset({"lm_head.weight"})
_FLOAT32_PARAMETERS: Final = frozenset({"A_log", "dt_bias", "D"})
# These compute logits, in float32, and calibration scales them: rounding would change the ranking.
_FLOAT32_MODULES: Final = frozenset({"binary_head", "lexical_prior", "surroundings", "soft_prior"})


@dataclass(frozen=True, slots=True)
class TensorHeader:
    """One tensor of a file, before it is read.

    ``dtype`` is the name that torch or safetensors has for it; ``readable`` says whether it is a dense tensor of
    16, 32 or 64-bit floating-point numbers.
    """

    file: Path
    stored_name: str
    shape: tuple[int, ...]
    dtype: str
    readable: bool


def has_weights(folder: Path) -> bool:
    """Whether a folder has weights in a format that `read_headers` reads."""
    return any((folder / name).is_file() for name in (SAFETENSORS, SAFETENSORS_INDEX, PICKLED))


def read_headers(folder: Path, rename: Callable[[str], str] = str) -> dict[str, TensorHeader]:
    """List the tensors of a checkpoint folder from the headers of its files.

    It reads ``model.safetensors`` if there is one, else the shards of ``model.safetensors.index.json``, else
    ``pytorch_model.bin``. The keys are the names in the model, which ``rename`` makes from those in the files.
    """
    # A name that is there decides, whatever it is: a damaged file is refused, not passed over for another.
    if os.path.lexists(folder / SAFETENSORS):
        found = list(_safetensors_headers(folder / SAFETENSORS))
    elif os.path.lexists(folder / SAFETENSORS_INDEX):
        found = list(_sharded_headers(folder / SAFETENSORS_INDEX))
    elif os.path.lexists(folder / PICKLED):
        found = list(_pickled_headers(folder / PICKLED))
    else:
        raise CheckpointError(f"{folder}: no weights there; expected {SAFETENSORS} or {PICKLED}")
    headers: dict[str, TensorHeader] = {}
    for header in found:
        name = rename(header.stored_name)
        if name in headers:
            raise CheckpointError(
                f"{header.file}: tensors {headers[name].stored_name} and {header.stored_name} are both {name}"
            )
        headers[name] = header
    return headers


def verify_headers(
    headers: Mapping[str, TensorHeader], expected: Iterable[tuple[str, tuple[int, ...]]], folder: Path
) -> None:
    """Check that a checkpoint has exactly the expected tensors, by name and shape, besides ``lm_head.weight``."""
    unseen = dict(headers)
    for name, shape in expected:
        header = unseen.pop(name, None)
        if header is None:
            raise CheckpointError(f"{folder}: tensor {name} is missing; expected it with shape {list(shape)}")
        where = f"{header.file}: tensor {header.stored_name}"
        if header.shape != shape:
            raise CheckpointError(
                f"{where} has shape {list(header.shape)}; config.json asks for {list(shape)}"
            )
        if not header.readable:
            raise CheckpointError(
                f"{where} is {header.dtype}; expected dense float64, float32, float16 or bfloat16"
            )
    extra = [header for name, header in unseen.items() if name not in _UNUSED]
    if extra:
        raise CheckpointError(
            f"{extra[0].file}: tensor {extra[0].stored_name} has no place in the model of config.json"
        )


def read_tensors(
    headers: Mapping[str, TensorHeader], *, device: torch.device | str, dtype: torch.dtype
) -> Iterator[tuple[str, Tensor]]:
    """Yield verified tensors one by one, so that only one is in memory twice: its name in the model, and a copy.

    Copies are independent of the files and have the dtype of `stored_dtype`. ``lm_head.weight`` is skipped.
    """
    for file in dict.fromkeys(header.file for header in headers.values()):
        wanted = {n: h.stored_name for n, h in headers.items() if h.file == file and n not in _UNUSED}
        for name, stored_name, tensor in _stored_tensors(file, wanted):
            target = stored_dtype(name, dtype)
            refuse_absurd(tensor, f"{file}: tensor {stored_name}", target)
            yield name, tensor.to(device=device, dtype=target, copy=True)


def stored_dtype(name: str, dtype: torch.dtype) -> torch.dtype:
    """Return the dtype of a tensor in a model of this dtype: decays, time steps and the head stay float32."""
    module, _, parameter = name.rpartition(".")
    is_float32 = module in _FLOAT32_MODULES or parameter in _FLOAT32_PARAMETERS
    return torch.float32 if is_float32 else dtype


def refuse_absurd(tensor: Tensor, where: str, target: torch.dtype) -> None:
    """Refuse NaN, infinity, what no training makes, and what the dtype ``target`` cannot hold.

    The extremes show all of it, without a mask as large as the tensor.
    """
    least, most = (float(extreme) for extreme in torch.aminmax(tensor))
    largest = max(-least, most)
    if not (math.isfinite(least) and math.isfinite(most)):
        raise CheckpointError(f"{where} holds NaN or infinity; expected finite weights")
    if largest > LARGEST_WEIGHT:
        raise CheckpointError(
            f"{where} holds a weight of size {largest:.3g}, which no training makes: the file is damaged;"
            f" expected at most {LARGEST_WEIGHT:.0g}; download or save the checkpoint again"
        )
    if largest > torch.finfo(target).max:
        raise CheckpointError(
            f"{where} holds a weight of size {largest:.3g}, too large for {str(target).removeprefix('torch.')};"
            " use float32 or bfloat16"
        )


def _safetensors_headers(path: Path) -> Iterator[TensorHeader]:
    """Headers of one safetensors file, which the library checks against the length of the file."""
    refuse_pointer(path)
    try:
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 - not a mapping
                part = file.get_slice(name)
                dtype = part.get_dtype()
                yield TensorHeader(path, name, tuple(part.get_shape()), dtype, dtype in _FLOATS)
    except SafetensorError as error:
        raise CheckpointError(
            f"{path}: truncated, or not a safetensors file ({first_line(error)}); download or save it again"
        ) from None


def _sharded_headers(index: Path) -> Iterator[TensorHeader]:
    """Headers of all shards that an index names."""
    weight_map = read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not all(isinstance(shard, str) for shard in weight_map.values()):
        raise CheckpointError(f"{index}: no weight_map from tensors to files; expected one")
    for shard in sorted(set(weight_map.values())):
        if Path(shard).name != shard or "\\" in shard:
            raise CheckpointError(f"{index}: shard {shard!r}; expected the name of a file next to the index")
        for header in _safetensors_headers(index.parent / shard):
            if weight_map.pop(header.stored_name, None) != shard:
                raise CheckpointError(
                    f"{header.file}: tensor {header.stored_name} is not in {index.name} there"
                )
            yield header
    if weight_map:
        name, shard = next(iter(weight_map.items()))
        raise CheckpointError(
            f"{index.parent / shard}: tensor {name} is missing, which {index.name} promises"
        )


def _pickled_headers(path: Path) -> Iterator[TensorHeader]:
    """Headers of a pickled state dict: on the meta device tensors have no storage."""
    check_pickled(path)
    size = path.stat().st_size
    total = 0
    for name, tensor in map_pickled(path, "meta").items():
        claimed = tensor.numel() * tensor.element_size()
        total += 0 if name in _UNUSED else claimed
        # a tied head shares the storage of the embedding; no other two tensors share one
        if max(claimed, total, tensor.untyped_storage().nbytes()) > size:
            raise CheckpointError(f"{path}: tensor {name} claims more bytes than the file's {size}")
        readable = tensor.layout == torch.strided and tensor.dtype in _FLOATS.values()
        dtype = str(tensor.dtype).removeprefix("torch.")
        yield TensorHeader(path, name, tuple(tensor.shape), dtype, readable)


def _stored_tensors(path: Path, wanted: Mapping[str, str]) -> Iterator[tuple[str, str, Tensor]]:
    """Yield name, stored name and tensor, each mapped from the file rather than read as a whole."""
    if path.name == PICKLED:
        stored = map_pickled(path, "cpu")
        yield from ((name, stored_name, stored[stored_name].detach()) for name, stored_name in wanted.items())
        return
    with safe_open(path, framework="pt") as file:
        for name, stored_name in wanted.items():
            yield name, stored_name, file.get_tensor(stored_name)
