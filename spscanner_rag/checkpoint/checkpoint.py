"""Find, verify, load and save checkpoints: a folder of ``config.json``, weights and ``tokenizer.json``."""

import json
import os
import shutil
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch.overrides import TorchFunctionMode

from spscanner_rag.checkpoint import hub
from spscanner_rag.checkpoint.config_file import (
    CONFIG,
    HEAD_TENSORS,
    PUBLISHED_VOCAB_SIZE,
    ScannerSettings,
    canonical_name,
    read_config,
    tensor_shapes,
)
from spscanner_rag.checkpoint.tensor_files import (
    PICKLED,
    SAFETENSORS,
    SAFETENSORS_INDEX,
    CheckpointError,
    has_weights,
    read_headers,
    read_json,
    read_tensors,
    refuse_not_finite,
    stored_dtype,
    verify_headers,
)
from spscanner_rag.checkpoint.tokenizer_file import (
    TOKENIZER,
    find_tokenizer,
    refuse_small_vocabulary,
    without_limits,
)
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.int8_linear import (
    projection_dtype,
    require_int8,
    use_int8_projections,
    with_int8_projections,
)
from spscanner_rag.mamba2.model import ScannerModel

PUBLISHED_WINDOW_TOKENS: Final = 120_000

_BUNDLED: Final = Path(__file__).parent / "bundled"
_HUB_FILES: Final = (CONFIG, TOKENIZER, SAFETENSORS, SAFETENSORS_INDEX, "model-*-of-*.safetensors")


@dataclass
class Checkpoint:
    """A loaded checkpoint.

    Parameters
    ----------
    model : ScannerModel
    settings : ScannerSettings
    tokenizer : tokenizers.Tokenizer
        Without truncation and padding.
    source : str
        As the caller named it; ``"default"`` for the bundled one.
    folder : Path
        Where its files lie.
    published : bool
        Whether it is a published scanner of the paper, rather than one of ours.
    """

    model: ScannerModel
    settings: ScannerSettings
    tokenizer: Tokenizer
    source: str
    folder: Path
    published: bool


def locate(
    name: str | Path | None,
    *,
    revision: str | None = None,
    token: str | bool | None = None,
    cache_dir: str | Path | None = None,
    local_files_only: bool = False,
    progress: bool = False,
) -> Path:
    """Return the folder of a checkpoint, downloading it if it is on the Hub.

    Parameters
    ----------
    name : str, Path or None
        A local folder, else a Hub id ``owner/name``; None, or "default", is the bundled checkpoint.
    revision : str, optional
        Branch, tag or commit, for a Hub id.
    token : str or bool, optional
        Access token for the Hub; True for the one stored on this machine.
    cache_dir : str or Path, optional
        Default: the cache of ``huggingface_hub``.
    local_files_only : bool, default False
        Never use the network.
    progress : bool, default False
        Show progress bars of a download.

    Returns
    -------
    Path

    Raises
    ------
    CheckpointError
        If there is no such folder or repository, or it cannot be downloaded.
    """
    if name is not None and (not isinstance(name, str | Path) or not str(name)):
        raise CheckpointError(f"checkpoint {name!r}; expected a folder, a Hub id owner/name, or None")
    folder = _BUNDLED if name is None else Path(name).expanduser()
    if folder.is_dir():
        return folder
    if name == "default":
        return locate(None)
    if folder.exists():
        raise CheckpointError(f"{name}: a file; expected the folder of a checkpoint, with {CONFIG} in it")
    if name is None:
        raise CheckpointError(f"{folder}: the bundled checkpoint is missing; install spscanner-rag again")
    if isinstance(name, Path) or hub.is_local_path(name):
        raise CheckpointError(
            f"{name}: no such folder; expected the folder of a checkpoint, or a Hub id owner/name"
        )

    def fetch(files: tuple[str, ...], revision: str | None) -> Path:
        return hub.download(
            name,
            files,
            revision=revision,
            token=token,
            cache_dir=cache_dir,
            local_files_only=local_files_only,
            progress=progress,
        )

    folder = fetch(_HUB_FILES, revision)
    # Pickled weights are fetched only where there are no others, and from the same commit.
    return folder if has_weights(folder) else fetch((*_HUB_FILES, PICKLED), folder.name)


def load_checkpoint(
    name: str | Path | None = None,
    *,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
    tokenizer: Tokenizer | str | Path | None = None,
    require_head: bool = True,
    revision: str | None = None,
    token: str | bool | None = None,
    cache_dir: str | Path | None = None,
    local_files_only: bool = False,
    progress: bool = False,
) -> Checkpoint:
    """Load a scanner: model, tokenizer and the way it reads documents.

    Parameters
    ----------
    name : str, Path or None, default None
        As for `locate`.
    device : torch.device or str, default "cpu"
    dtype : torch.dtype, default float32
        As for `load_model`.
    tokenizer : tokenizers.Tokenizer, str or Path, optional
        Instead of the checkpoint's own: a tokenizer, a ``tokenizer.json``, a folder that holds one, or a Hub
        id.
    require_head : bool, default True
        False takes a language model without ``binary_head`` too, and starts a head for training.
    revision, token, cache_dir, local_files_only, progress
        As for `locate`.

    Returns
    -------
    Checkpoint

    Raises
    ------
    CheckpointError
        In one line that names the file, and the tensor or key.
    """
    hub_options: dict[str, Any] = {
        "token": token,
        "cache_dir": cache_dir,
        "local_files_only": local_files_only,
        "progress": progress,
    }
    folder = locate(name, revision=revision, **hub_options)
    config, settings, published = _read_folder(folder)
    found = find_tokenizer(tokenizer, folder, published, hub_options)
    refuse_small_vocabulary(config, found, folder / CONFIG)
    return Checkpoint(
        model=load_model(folder, device=device, dtype=dtype, require_head=require_head),
        settings=settings,
        tokenizer=found,
        source="default" if name is None else str(name),
        folder=folder,
        published=published,
    )


def load_model(
    folder: str | Path,
    *,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
    require_head: bool = True,
) -> ScannerModel:
    """Load the model of a local folder, for token ids; no tokenizer is needed.

    Parameters
    ----------
    folder : str or Path
        With ``config.json`` and weights, in ``mamba_ssm``'s layout or that of transformers.
    device : torch.device or str, default "cpu"
    dtype : torch.dtype, default float32
        Of the weights; ``A_log``, ``dt_bias``, ``D`` and the head are float32 always. torch.int8 is of both
        projections of every layer, on a CPU, and leaves all else in float32: such a model cannot be saved.
    require_head : bool, default True
        False takes a language model without ``binary_head`` too, and starts a head for training, each time
        the same.

    Returns
    -------
    ScannerModel
        In evaluation mode.

    Raises
    ------
    CheckpointError
        If the configuration is not supported, or a tensor is missing, extra, wrongly shaped, not
        floating-point or not finite, before any weights are allocated except for the last.
    ValueError
        For torch.int8 where it cannot be had.
    """
    int8 = dtype == torch.int8
    if int8:
        require_int8(device)
        dtype = torch.float32
    if not dtype.is_floating_point:
        raise CheckpointError(
            f"dtype is {dtype}; expected a floating-point one, as torch.float32, or torch.int8"
        )
    folder = Path(folder)
    config, settings, _ = _read_folder(folder)
    headers = read_headers(folder, canonical_name)
    has_head = any(name in headers for name in HEAD_TENSORS)
    if require_head and not has_head:
        raise CheckpointError(
            f"{folder}: a language model without {HEAD_TENSORS[0]}, which loads only for training;"
            " expected a scanner: train one with it as --base"
        )
    shapes = tensor_shapes(config, **settings.lexical, head=has_head)
    verify_headers(headers, shapes, folder)
    stored = read_tensors(headers, device=device, dtype=dtype)
    tensors = dict(with_int8_projections(stored) if int8 else stored)
    if not has_head:
        tensors |= _new_head(config, device, dtype)
    with torch.device("meta"), _WithoutFirstValues():
        model = new_model(config, settings)
        if int8:
            use_int8_projections(model)
    model.load_state_dict(tensors, assign=True)
    return model.eval()


def new_model(config: Mamba2Config, settings: ScannerSettings, *, head: bool = True) -> ScannerModel:
    """A model of first values, with the parts of the lexical channel that the settings have."""
    return ScannerModel(
        config,
        match_embedding=settings.match,
        lexical_prior=settings.prior,
        surroundings=settings.surroundings,
        head=head,
    )


def save_checkpoint(
    folder: str | Path,
    model: ScannerModel,
    settings: ScannerSettings,
    tokenizer: Tokenizer | None,
    dtype: torch.dtype | None = None,
) -> None:
    """Write ``config.json``, ``model.safetensors`` and ``tokenizer.json``.

    A new folder appears complete or not at all. In an existing one each of the three files is replaced by a
    complete one, the weights last but for the configuration; every other file is left alone.

    Parameters
    ----------
    folder : str or Path
        Created if absent, with its parents.
    model : ScannerModel
    settings : ScannerSettings
    tokenizer : tokenizers.Tokenizer or None
        Written without truncation and padding; None writes none.
    dtype : torch.dtype, optional
        Of the saved weights, but for ``A_log``, ``dt_bias``, ``D`` and the head; default: as in the model.

    Raises
    ------
    CheckpointError
        If a weight is not finite, model, settings and tokenizer do not belong together, or the place cannot
        be written. Nothing is written then.
    """
    folder = Path(folder)
    tensors = _tensors_to_save(model, settings, dtype)
    if tokenizer is not None:
        refuse_small_vocabulary(model.config, tokenizer, folder / CONFIG)
    try:
        config = json.dumps(model.config.to_dict() | {"spscanner": settings.to_dict()}, indent=2)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"settings.training: {error}; expected what JSON can hold") from None
    inside = folder.is_dir()
    staging = (folder if inside else folder.parent) / f".{folder.name}-{uuid.uuid4().hex}.partial"
    try:
        staging.mkdir(parents=True)
        if tokenizer is not None:
            (staging / TOKENIZER).write_text(without_limits(tokenizer).to_str(), encoding="utf-8")
        save_file(tensors, staging / SAFETENSORS, metadata={"format": "pt"})
        (staging / CONFIG).write_text(config + "\n", encoding="utf-8")
        shutil.copymode(staging / CONFIG, staging / SAFETENSORS)  # safetensors makes it private
        _publish(staging, folder, inside=inside)
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CheckpointError(
            f"{folder}: cannot write the checkpoint ({reason}); pass a folder that can be written"
        ) from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)


class _WithoutFirstValues(TorchFunctionMode):
    """Leave out the arithmetic of first values, which a model on the meta device has none of.

    The first such operation there has torch import 800 modules, for more than a second.
    """

    _SAME_SHAPE: Final = frozenset({"normal", "exp", "expm1", "log", "neg", "add"})  # less their underscores

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


def _publish(staging: Path, folder: Path, *, inside: bool) -> None:
    """Move complete files to their place."""
    for path in staging.iterdir():
        with path.open("rb+") as file:
            os.fsync(file.fileno())
    if not inside:
        staging.rename(folder)
        return
    for name in (TOKENIZER, SAFETENSORS, CONFIG):
        if (staging / name).exists():
            (staging / name).replace(folder / name)


def _tensors_to_save(
    model: ScannerModel, settings: ScannerSettings, dtype: torch.dtype | None
) -> dict[str, torch.Tensor]:
    """The state dict on the CPU, after checking that it is what `load_model` will expect."""
    if projection_dtype(model) == torch.int8:
        raise CheckpointError("the model computes in int8; load it in float32 or bfloat16 to save it")
    stored = model.state_dict()
    head = any(name in stored for name in HEAD_TENSORS)
    shapes = dict(tensor_shapes(model.config, **settings.lexical, head=head))
    if shapes != {name: tuple(tensor.shape) for name, tensor in stored.items()}:
        odd = sorted(shapes.keys() ^ stored.keys()) or sorted(shapes)
        raise CheckpointError(
            f"tensor {odd[0]}: the model and its settings do not agree; expected the same of both"
        )
    for name, tensor in stored.items():
        refuse_not_finite(tensor, f"the model's tensor {name}")
    return {
        name: tensor.detach().to("cpu", stored_dtype(name, dtype or tensor.dtype)).contiguous()
        for name, tensor in stored.items()
    }


def _read_folder(folder: Path) -> tuple[Mamba2Config, ScannerSettings, bool]:
    """Model, way of reading, and whether it is a published scanner, from ``config.json``."""
    raw = read_json(folder / CONFIG)
    try:
        config = read_config(raw)
        if "spscanner" in raw:
            return config, ScannerSettings.from_dict(raw["spscanner"]), False
    except ValueError as error:
        raise CheckpointError(f"{folder / CONFIG}: {error}") from None
    if config.vocab_size == PUBLISHED_VOCAB_SIZE:
        return config, ScannerSettings("reference", window_tokens=PUBLISHED_WINDOW_TOKENS), True
    return config, ScannerSettings(), False


def _new_head(
    config: Mamba2Config, device: torch.device | str, dtype: torch.dtype
) -> dict[str, torch.Tensor]:
    """A head to start training from, as torch.nn.Linear would start it, but the same every time."""
    bound = config.d_model**-0.5
    weight = torch.empty(1, config.d_model).uniform_(
        -bound, bound, generator=torch.Generator().manual_seed(0)
    )
    new = dict(zip(HEAD_TENSORS, (weight, torch.zeros(1)), strict=True))
    return {name: tensor.to(device=device, dtype=dtype) for name, tensor in new.items()}
