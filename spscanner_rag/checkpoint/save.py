"""Save a checkpoint: a folder whose content changes as a whole.

The files of a checkpoint cannot be replaced together, and its folder may hold others or
be a mount point. So a complete new checkpoint is first moved to a place within the
folder, by one rename; from then on `current_files` finds it there. Its files then
replace the old ones, and the place is removed; after a kill, the next save does it.
"""

import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from uuid import uuid4

import torch
from safetensors import SafetensorError
from safetensors.numpy import save
from safetensors.torch import save as save_tensors
from safetensors.torch import save_file
from tokenizers import Tokenizer

from spscanner_rag.checkpoint.config import HEAD_TENSORS, ScannerSettings
from spscanner_rag.checkpoint.digests import (
    CONTENT,
    DIGESTS,
    digest_of_config,
    file_digest,
)
from spscanner_rag.checkpoint.encoder_content import CROSS, SENTENCE_SCAN
from spscanner_rag.checkpoint.encoder_file import EncoderFile
from spscanner_rag.checkpoint.errors import CheckpointError
from spscanner_rag.checkpoint.file_names import (
    CONFIG,
    ENCODER,
    FILES,
    PLACE,
    SAFETENSORS,
    TOKENIZER,
    WORD_VECTORS,
)
from spscanner_rag.checkpoint.model_weights import tensor_shapes, unloaded_model
from spscanner_rag.checkpoint.tensor_files import refuse_absurd, stored_dtype
from spscanner_rag.checkpoint.tokenizer_file import (
    refuse_small_vocabulary,
    without_limits,
)
from spscanner_rag.encoder.bert import grouped, restored
from spscanner_rag.encoder.bert_shape import SCALE
from spscanner_rag.lexical.word_vectors import WordVectors
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.system.whole_files import fsync_file, one_at_a_time, sync_folder
from spscanner_rag.text.escaping import first_line


def save_checkpoint(
    folder: str | Path,
    model: ScannerModel,
    settings: ScannerSettings,
    tokenizer: Tokenizer | None,
    dtype: torch.dtype | None = None,
    *,
    word_vectors: WordVectors | None = None,
    encoder: EncoderFile | None = None,
) -> None:
    """Write ``config.json``, the weights, ``tokenizer.json``, word vectors and encoder.

    Each of these files is replaced by a complete one; other files in the folder do not
    change. Whenever the program is killed, the old checkpoint, if there was one, or the
    new one loads.

    The tokenizer is written without truncation and padding; None writes none. ``dtype``
    is that of the weights, by default the model's, except ``A_log``, ``dt_bias``, ``D``
    and the head, which are always float32. Word vectors are needed exactly when the
    settings switch on the soft channel, and an encoder, which is written in int8,
    exactly when they have weights of meaning.

    Raises `CheckpointError`, and writes nothing, if a weight is not finite or absurdly
    large, if model, settings, tokenizer, word vectors and encoder do not belong
    together, or if the folder cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from spscanner_rag.checkpoint.load import load_checkpoint
    >>> from spscanner_rag.mamba2.config import Mamba2Config
    >>> from spscanner_rag.mamba2.model import ScannerModel
    >>> config = Mamba2Config(d_model=64, n_layer=1, vocab_size=16384)
    >>> model = ScannerModel(config)
    >>> tokenizer = load_checkpoint().tokenizer
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_checkpoint(folder, model, ScannerSettings(), tokenizer)
    ...     load_checkpoint(folder).model.config.d_model
    64
    """
    folder = Path(folder)
    tensors = _tensors_to_save(model, settings, dtype)
    for part, what, key, wanted in (
        (word_vectors, "word vectors", "lexical.soft", settings.soft),
        (encoder, "encoder", "meaning", settings.meaning),
    ):
        if (part is None) == bool(wanted):
            got = f"no {what}" if part is None else what
            raise CheckpointError(
                f"{got} for settings with {key} {wanted}; pass both or neither"
            )
    if tokenizer is not None:
        refuse_small_vocabulary(model.config, tokenizer, folder / CONFIG)
    is_new = not folder.exists()
    staging = folder / f".{folder.name}-{uuid4().hex}.partial"
    try:
        staging.mkdir(parents=True)
        if tokenizer is not None:
            (staging / TOKENIZER).write_text(
                without_limits(tokenizer).to_str(), encoding="utf-8"
            )
        if word_vectors is not None:
            (staging / WORD_VECTORS).write_bytes(save(word_vectors.to_arrays()))
        if encoder is not None:
            write_encoder(staging / ENCODER, encoder)
        save_file(tensors, staging / SAFETENSORS, metadata={"format": "pt"})
        section = settings.to_dict() | {
            DIGESTS: {
                path.name: file_digest(path) for path in sorted(staging.iterdir())
            }
        }
        # in the form that JSON gives back, before the digest of its content is added
        config = json.loads(json.dumps(model.config.to_dict() | {"spscanner": section}))
        config["spscanner"][DIGESTS][CONTENT] = digest_of_config(config)
        (staging / CONFIG).write_text(
            json.dumps(config, indent=2) + "\n", encoding="utf-8"
        )
        # safetensors makes it private
        shutil.copymode(staging / CONFIG, staging / SAFETENSORS)
        _replace_files(staging, folder)
    except (
        OSError,
        SafetensorError,
        TypeError,
        ValueError,
    ) as error:  # TypeError: JSON cannot hold a value
        reason = getattr(error, "strerror", None) or first_line(error)
        raise CheckpointError(
            f"{folder}: cannot write the checkpoint ({reason}); pass a folder that is"
            " writable"
        ) from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        if is_new:
            with suppress(OSError):  # it does not exist, or is no longer empty
                folder.rmdir()


def _tensors_to_save(
    model: ScannerModel, settings: ScannerSettings, dtype: torch.dtype | None
) -> dict[str, torch.Tensor]:
    """The state dict on the CPU, after checking that `load_model` will accept it."""
    stored = model.state_dict()
    head = any(name in stored for name in HEAD_TENSORS)
    shapes = tensor_shapes(unloaded_model(model.config, settings, head=head))
    if shapes != tensor_shapes(model):
        odd = sorted(shapes.keys() ^ stored.keys()) or sorted(shapes)
        raise CheckpointError(
            f"tensor {odd[0]}: the model and its settings do not agree; expected the"
            " same tensors from both"
        )
    for name, tensor in stored.items():
        refuse_absurd(
            tensor,
            f"the model's tensor {name}",
            stored_dtype(name, dtype or tensor.dtype),
        )
    return {
        name: (
            tensor.detach()
            .to("cpu", stored_dtype(name, dtype or tensor.dtype))
            .contiguous()
        )
        for name, tensor in stored.items()
    }


def _replace_files(complete: Path, folder: Path) -> None:
    """Replace the checkpoint's files in ``folder`` by those of a folder within it.

    That folder is removed.

    Programs that save to one folder wait for each other. After an ``OSError`` the old
    or the new checkpoint loads.
    """
    with one_at_a_time(folder):
        _finish(folder)
        for path in complete.iterdir():
            fsync_file(path)
        # a file that the new checkpoint lacks is kept, such as the tokenizer
        for name in FILES:
            if not (complete / name).exists() and (folder / name).is_file():
                _link(folder / name, complete / name)
        sync_folder(complete)
        complete.rename(folder / PLACE)
        sync_folder(folder)
        _finish(folder)


def _finish(folder: Path) -> None:
    """Let the files of a complete new checkpoint, if any, replace the old ones."""
    place = folder / PLACE
    if not place.is_dir():
        return
    for name in FILES:
        if (place / name).exists():
            second = place / f"{name}.part"
            second.unlink(missing_ok=True)
            _link(place / name, second)
            second.replace(folder / name)
    sync_folder(folder)
    done = folder / f"{PLACE}-{uuid4().hex}.partial"
    place.rename(done)
    shutil.rmtree(done, ignore_errors=True)


def _link(source: Path, target: Path) -> None:
    """Give a file a second name, or copy it if the system has no hard links."""
    try:
        os.link(source.resolve(), target)
    except OSError:
        shutil.copyfile(source, target)
        fsync_file(target)
        shutil.copymode(source, target)


def write_encoder(path: Path, encoder: EncoderFile) -> None:
    """Write an encoder to one file, with its matrices in int8."""
    description = {
        "config": json.dumps({"model_type": "bert"} | asdict(encoder.shape)),
        "tokenizer": encoder.tokenizer.to_str(),
        "prefix": encoder.prefix,
        "first_token": json.dumps(encoder.first_token),
    }
    cross = quantized(restored(encoder.cross or {}))
    tensors = quantized(restored(encoder.weights)) | {
        CROSS + name: weight for name, weight in cross.items()
    }
    for name, weight in (encoder.sentence_scan or {}).items():
        tensors[SENTENCE_SCAN + name] = weight.float().contiguous()
    path.write_bytes(save_tensors(tensors, metadata=description))


def quantized(weights: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return weights with every matrix as int8.

    Each `GROUP` numbers of a row share a float16 scale.
    """
    stored = {name: weight.float() for name, weight in weights.items()}
    for name in [name for name, weight in stored.items() if weight.ndim > 1]:
        groups = grouped(stored[name])
        scale = (groups.abs().amax(2) / 127).half().clamp(min=1e-7)  # (rows, groups)
        stored[name] = (
            (groups / scale.float()[..., None])
            .round()
            .clamp(-127, 127)
            .to(torch.int8)
            .flatten(1)
        )
        stored[f"{name}{SCALE}"] = scale
    return stored
