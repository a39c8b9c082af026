"""Save a checkpoint: a folder that appears, or changes, as a whole."""

import json
import shutil
import uuid
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from tokenizers import Tokenizer

from spscanner_rag.checkpoint.config import HEAD_TENSORS, ScannerSettings
from spscanner_rag.checkpoint.digests import DIGESTS, Digests, with_own_digest
from spscanner_rag.checkpoint.file_access import (
    CONFIG,
    SAFETENSORS,
    TOKENIZER,
    WORD_VECTORS,
    CheckpointError,
    first_line,
    write_word_vectors,
)
from spscanner_rag.checkpoint.load import tensor_shapes, unloaded_model
from spscanner_rag.checkpoint.tensor_files import refuse_absurd, stored_dtype
from spscanner_rag.checkpoint.tokenizer_file import refuse_small_vocabulary, without_limits
from spscanner_rag.checkpoint.whole_file import fsync_file, replace_files
from spscanner_rag.lexical.word_vectors import WordVectors
from spscanner_rag.mamba2.int8_linear import projection_dtype
from spscanner_rag.mamba2.model import ScannerModel


def save_checkpoint(
    folder: str | Path,
    model: ScannerModel,
    settings: ScannerSettings,
    tokenizer: Tokenizer | None,
    dtype: torch.dtype | None = None,
    *,
    word_vectors: WordVectors | None = None,
) -> None:
    """Write ``config.json``, ``model.safetensors``, ``tokenizer.json`` and ``word_vectors.safetensors``.

    A new folder appears complete or not at all. In an existing one each of these files is replaced by a complete
    one, and every other file is left alone; whenever the program is killed, either the old checkpoint or the new
    one loads from the folder.

    Parameters
    ----------
    folder : str or Path
        Created if absent, with its parents.
    tokenizer : tokenizers.Tokenizer or None
        Written without truncation and padding; None writes none.
    dtype : torch.dtype, optional
        Of the weights, except ``A_log``, ``dt_bias``, ``D`` and the head, always float32. Default: the model's.
    word_vectors : WordVectors, optional
        Those of the soft lexical channel; needed exactly when the settings switch it on.

    Raises
    ------
    CheckpointError
        If a weight is not finite or absurdly large, model, settings, tokenizer and word vectors do not belong
        together, or the folder cannot be written. Nothing is written then.
    """
    folder = Path(folder)
    tensors = _tensors_to_save(model, settings, dtype)
    if (word_vectors is None) == settings.soft:
        got = "no word vectors" if word_vectors is None else "word vectors"
        raise CheckpointError(
            f"{got} for settings with lexical.soft {settings.soft}; pass word_vectors exactly when it is true"
        )
    if tokenizer is not None:
        refuse_small_vocabulary(model.config, tokenizer, folder / CONFIG)
    try:
        json.dumps(settings.training)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"settings.training: {error}; expected what JSON can hold") from None
    inside = folder.is_dir()
    staging = (folder if inside else folder.parent) / f".{folder.name}-{uuid.uuid4().hex}.partial"
    try:
        staging.mkdir(parents=True)
        if tokenizer is not None:
            (staging / TOKENIZER).write_text(without_limits(tokenizer).to_str(), encoding="utf-8")
        if word_vectors is not None:
            write_word_vectors(staging / WORD_VECTORS, word_vectors)
        save_file(tensors, staging / SAFETENSORS, metadata={"format": "pt"})
        section = settings.to_dict() | {DIGESTS: Digests.of_files(sorted(staging.iterdir())).to_config()}
        config = json.dumps(with_own_digest(model.config.to_dict() | {"spscanner": section}), indent=2)
        (staging / CONFIG).write_text(config + "\n", encoding="utf-8")
        shutil.copymode(staging / CONFIG, staging / SAFETENSORS)  # safetensors makes it private
        _publish(staging, folder, inside=inside)
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or first_line(error)
        raise CheckpointError(
            f"{folder}: cannot write the checkpoint ({reason}); pass a folder that can be written"
        ) from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _publish(staging: Path, folder: Path, *, inside: bool) -> None:
    """Move complete files to the checkpoint's folder."""
    if inside:
        replace_files(staging, folder)
        return
    for path in staging.iterdir():
        fsync_file(path)
    try:
        staging.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
        replace_files(staging.rename(folder / staging.name), folder)  # another program was first


def _tensors_to_save(
    model: ScannerModel, settings: ScannerSettings, dtype: torch.dtype | None
) -> dict[str, torch.Tensor]:
    """The state dict on the CPU, after checking that `load_model` will accept it."""
    if projection_dtype(model) == torch.int8:
        raise CheckpointError("the model computes in int8; load it in float32 or bfloat16 to save it")
    stored = model.state_dict()
    head = any(name in stored for name in HEAD_TENSORS)
    shapes = tensor_shapes(unloaded_model(model.config, settings, head=head))
    if shapes != tensor_shapes(model):
        odd = sorted(shapes.keys() ^ stored.keys()) or sorted(shapes)
        raise CheckpointError(
            f"tensor {odd[0]}: the model and its settings do not agree; expected the same of both"
        )
    for name, tensor in stored.items():
        refuse_absurd(tensor, f"the model's tensor {name}", stored_dtype(name, dtype or tensor.dtype))
    return {
        name: tensor.detach().to("cpu", stored_dtype(name, dtype or tensor.dtype)).contiguous()
        for name, tensor in stored.items()
    }
