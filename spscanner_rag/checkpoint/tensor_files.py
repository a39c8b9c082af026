"""Read tensor files: first their headers, to verify them, then one tensor at a time.

Nothing large is allocated before names, shapes and dtypes are known to be those of the
model.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import torch
from safetensors import safe_open
from torch import Tensor

from spscanner_rag.checkpoint.bounded_files import open_file
from spscanner_rag.checkpoint.errors import CheckpointError, faults_of
from spscanner_rag.checkpoint.pickled_tensors import check_pickled, map_pickled
from spscanner_rag.checkpoint.tensor_headers import (
    UNUSED,
    TensorHeader,
    refuse_extremes,
)
from spscanner_rag.checkpoint.weight_files import is_pickled, weight_files

_FLOATS: Final = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
}
_FLOAT32_PARAMETERS: Final = frozenset({"A_log", "dt_bias", "D"})
# These compute logits, in float32, and calibration scales them: rounding would change
# the ranking.
_FLOAT32_MODULES: Final = frozenset(
    {"binary_head", "lexical_prior", "surroundings", "soft_prior"}
)


def read_headers(
    folder: Path, rename: Callable[[str], str] = str
) -> dict[str, TensorHeader]:
    """Return the headers of a folder's tensors, by the model's names for them.

    Parameters
    ----------
    folder : Path
        Holds the weights in one file, or in several with an index (`weight_files`).
    rename : callable, optional
        Makes the model's name of a tensor from the stored one.

    Raises
    ------
    CheckpointError
        If a file is missing or damaged, or the index promises other tensors.
    """
    headers: dict[str, TensorHeader] = {}
    for path, promised in weight_files(folder).items():
        headers_of_file = list(_headers_of(path))
        if promised is not None:
            _check_promise(path, headers_of_file, promised)
        for header in headers_of_file:
            name = rename(header.stored_name)
            if name in headers:
                raise CheckpointError(
                    f"{header.file}: tensors {headers[name].stored_name} and "
                    f"{header.stored_name} are both {name}"
                )
            headers[name] = header
    return headers


def _headers_of(path: Path) -> Iterator[TensorHeader]:
    """The headers of one file."""
    return _pickled_headers(path) if is_pickled(path) else _safetensors_headers(path)


def _check_promise(
    path: Path, headers: list[TensorHeader], promised: frozenset[str]
) -> None:
    """Refuse a shard that has other tensors than the index says."""
    stored = {header.stored_name for header in headers}
    missing = sorted(promised - stored)
    if missing:
        raise CheckpointError(
            f"{path}: tensor {missing[0]} is missing, which the index promises; "
            "download the checkpoint again"
        )
    surplus = sorted(stored - promised)
    if surplus:
        raise CheckpointError(
            f"{path}: tensor {surplus[0]} is not in the index for this file; download "
            "the checkpoint again"
        )


def read_tensors(
    headers: Mapping[str, TensorHeader],
    *,
    device: torch.device | str,
    dtype: torch.dtype,
) -> Iterator[tuple[str, Tensor]]:
    """Yield names and verified copies one by one, in `stored_dtype`.

    ``lm_head.weight`` is left out.
    """
    wanted = {name: header for name, header in headers.items() if name not in UNUSED}
    for name, tensor in _stored_tensors(wanted):
        target = stored_dtype(name, dtype)
        refuse_absurd(
            tensor, f"{wanted[name].file}: tensor {wanted[name].stored_name}", target
        )
        yield name, tensor.to(device=device, dtype=target, copy=True)


def stored_dtype(name: str, dtype: torch.dtype) -> torch.dtype:
    """Return the dtype of a tensor in a model of this dtype.

    Decays, time steps and the head stay float32.
    """
    module, _, parameter = name.rpartition(".")
    is_float32 = module in _FLOAT32_MODULES or parameter in _FLOAT32_PARAMETERS
    return torch.float32 if is_float32 else dtype


def refuse_absurd(tensor: Tensor, where: str, target: torch.dtype) -> None:
    """Refuse NaN, infinity, and weights too large for training or for ``target``."""
    lowest, highest = (float(extreme) for extreme in torch.aminmax(tensor))
    name = str(target).removeprefix("torch.")
    refuse_extremes(lowest, highest, where, name, torch.finfo(target).max)


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
    """Headers of a pickled state dict.

    They come from tensors on the meta device, which have no storage.
    """
    check_pickled(path)
    size = path.stat().st_size
    total = 0
    for name, tensor in map_pickled(path, "meta").items():
        claimed = tensor.numel() * tensor.element_size()
        total += 0 if name in UNUSED else claimed
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
    """Yield each name and tensor, mapped from its file, which is not read whole."""
    for path in dict.fromkeys(header.file for header in headers.values()):
        stored_names = {
            name: header.stored_name
            for name, header in headers.items()
            if header.file == path
        }
        if is_pickled(path):
            mapped = map_pickled(path, "cpu")
            for name, stored_name in stored_names.items():
                yield name, mapped[stored_name].detach()
            continue
        with safe_open(path, framework="pt") as file:
            for name, stored_name in stored_names.items():
                yield name, file.get_tensor(stored_name)
