"""The model of a checkpoint: made without values, checked, and filled with weights."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import torch
from torch.overrides import TorchFunctionMode

from spscanner_rag.checkpoint.config import HEAD_TENSORS, ScannerSettings
from spscanner_rag.checkpoint.digests import Digests
from spscanner_rag.checkpoint.errors import CheckpointError
from spscanner_rag.checkpoint.file_names import CONFIG, SAFETENSORS
from spscanner_rag.checkpoint.layout import SCANNER, Layout
from spscanner_rag.checkpoint.tensor_files import read_headers, read_tensors
from spscanner_rag.checkpoint.tensor_headers import TensorHeader, verify_headers
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.system.forks import compute_in_forks
from spscanner_rag.text.escaping import first_line


def new_model(
    config: Mamba2Config, settings: ScannerSettings, *, head: bool = True
) -> ScannerModel:
    """A model with initial weights.

    It has the parts of the lexical channel that the settings switch on.
    """
    return ScannerModel(
        config,
        match_embedding=settings.match,
        lexical_prior=settings.prior,
        surroundings=settings.surroundings,
        soft=settings.soft,
        head=head,
    )


def unloaded_model(
    config: Mamba2Config, settings: ScannerSettings, *, head: bool = True
) -> ScannerModel:
    """A model whose tensors have no values, so that nothing large is allocated."""
    with torch.device("meta"), _WithoutFirstValues():
        return new_model(config, settings, head=head)


def tensor_shapes(model: ScannerModel) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor that a checkpoint of a model holds, by name."""
    return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}


def load_weights(
    folder: Path,
    config: Mamba2Config,
    settings: ScannerSettings,
    digests: Digests,
    device: torch.device | str,
    dtype: torch.dtype,
    require_head: bool,
    layout: Layout = SCANNER,
) -> tuple[ScannerModel, bool]:
    """Make the model of a folder, and tell whether its head was in the files."""
    if not dtype.is_floating_point:
        raise CheckpointError(
            f"dtype is {dtype}; expected a floating-point one, as torch.float32"
        )
    headers = read_headers(folder, layout.name)
    has_head = any(name in headers for name in HEAD_TENSORS)
    if require_head and not has_head:
        raise CheckpointError(
            f"{folder}: a language model without {HEAD_TENSORS[0]}, which loads only"
            " for training; expected a scanner: train one with it as --base"
        )
    absent = _absent_tensors(config, headers, has_head)
    compute_in_forks()  # converting weights is already a computation
    # So that an absurd number of layers costs nothing: with one more than there are
    # tensors, one is missing.
    bounded = replace(config, n_layer=min(config.n_layer, len(headers) + 1))
    try:
        model = unloaded_model(bounded, settings)
    except (RuntimeError, OverflowError, TypeError) as error:  # sizes beyond 64 bits
        raise CheckpointError(
            f"{folder / CONFIG}: no model has such sizes ({first_line(error)});"
            " expected those of the weights"
        ) from None
    expected = tensor_shapes(model)
    for name in absent:
        expected.pop(name, None)
    verify_headers(headers, expected, folder)
    # now that no file is larger than its tensors
    paths = [folder / SAFETENSORS, *(header.file for header in headers.values())]
    for path in dict.fromkeys(paths):
        digests.check(path)
    tensors = dict(read_tensors(headers, device=device, dtype=dtype))
    for name, tensor in absent.items():
        tensors[name] = tensor.to(device)
    model.load_state_dict(tensors, assign=True)
    return model.eval(), has_head


def _absent_tensors(
    config: Mamba2Config, headers: Mapping[str, TensorHeader], has_head: bool
) -> dict[str, torch.Tensor]:
    """The tensors of the head that the files need not have, by name."""
    weight, bias = HEAD_TENSORS
    if not has_head:  # distributed as in torch.nn.Linear, but the same every time
        bound = config.d_model**-0.5
        generator = torch.Generator().manual_seed(0)
        first = torch.empty(1, config.d_model)
        first.uniform_(-bound, bound, generator=generator)
        return {weight: first, bias: torch.zeros(1)}
    is_renamed = weight in headers and headers[weight].stored_name != weight
    if bias not in headers and is_renamed:
        # the heads of transformers' classifiers have no bias
        return {bias: torch.zeros(1)}
    return {}


class _WithoutFirstValues(TorchFunctionMode):
    """Skip initial weights, which the meta device lacks.

    torch would import 800 modules for them, which takes a second.
    """

    # without underscores
    _SAME_SHAPE: Final = frozenset({"normal", "exp", "expm1", "log", "neg", "add"})

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> object:
        kwargs = kwargs or {}
        if getattr(func, "__name__", "").strip("_") in self._SAME_SHAPE:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)
