"""The content of an encoder's file as arrays, read and verified without torch."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from spscanner_rag.checkpoint.arrays import load_arrays
from spscanner_rag.checkpoint.bounded_files import LARGEST_TABLE, Check, read_bytes
from spscanner_rag.checkpoint.errors import CheckpointError, faults_of
from spscanner_rag.checkpoint.tensor_headers import refuse_extremes
from spscanner_rag.checkpoint.tokenizer_file import tokenizer_of
from spscanner_rag.encoder.bert_shape import (
    SCALE,
    WORD_EMBEDDINGS,
    BertShape,
    group_of,
)
from spscanner_rag.encoder.window_encoder import check_fit

Arrays = dict[str, NDArray[Any]]

# begins the names of a cross-reader's tensors in an encoder's file
CROSS: Final = "cross."
# the same for a sentence scan's
SENTENCE_SCAN: Final = "sentence_scan."
HEAD: Final = "head"
_LARGEST_INT8: Final = 128
_LARGEST_LOG_SCALE: Final = 20.0  # of a cosine; its exponential is 5e8
AGAIN: Final = "download it, or make it with `spscanner encoder`, again"


class EncoderContent(NamedTuple):
    """The content of an encoder's file."""

    shape: BertShape
    weights: Arrays  # matrices may be in int8
    tokenizer: Tokenizer
    prefix: str = ""
    first_token: bool = False
    # the cross-reader's: see `cross_tensors`
    cross: Arrays | None = None
    # the sentence scan's, whose sizes are in ``config.json``
    sentence_scan: Arrays | None = None


def cross_tensors(shape: BertShape) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor of a cross-reader, by name."""
    shapes = {
        name: sizes
        for name, sizes in shape.tensors().items()
        if name != WORD_EMBEDDINGS
    }
    return shapes | {HEAD: (shape.hidden_size + 2,)}


def read_content(path: Path, check: Check | None = None) -> tuple[EncoderContent, str]:
    """Return what `write_encoder` wrote, and its digest.

    `CheckpointError` if it is missing or damaged.
    """
    content = read_bytes(path, LARGEST_TABLE, check)
    with faults_of(path, f"; {AGAIN}"):
        tensors = load_arrays(content)
        length = int.from_bytes(content[:8], "little")
        description = json.loads(content[8 : 8 + length]).get("__metadata__", {})
        config = json.loads(description.get("config", "null"))
        if not isinstance(config, dict):
            raise ValueError(f"its config is {config!r:.60}; expected an object")
        shape = BertShape.from_dict(config)
        tokenizer = tokenizer_of(description.get("tokenizer", "").encode(), path)
        check_fit(tokenizer, shape)
        first_token = bool(json.loads(description.get("first_token", "false")))
        cross = _taken_out(tensors, CROSS)
        sentence_scan = _taken_out(tensors, SENTENCE_SCAN)
        prefix = str(description.get("prefix", ""))
    verify_arrays(tensors, shape.tensors(), path)
    if cross:
        verify_arrays(cross, cross_tensors(shape), path)
        _refuse_large_scale(cross[HEAD], path)
    encoder = EncoderContent(
        shape,
        tensors,
        tokenizer,
        prefix,
        first_token,
        cross or None,
        sentence_scan or None,
    )
    return encoder, hashlib.sha256(content).hexdigest()


def _taken_out(tensors: Arrays, prefix: str) -> Arrays:
    """The tensors whose names begin with a prefix, which are taken out."""
    names = [name for name in tensors if name.startswith(prefix)]
    return {name.removeprefix(prefix): tensors.pop(name) for name in names}


@np.errstate(invalid="ignore")  # what is not a number is refused, without a warning
def verify_arrays(
    weights: Mapping[str, NDArray[Any]],
    expected: Mapping[str, tuple[int, ...]],
    path: Path,
    prefix: str = "",
    next_step: str = AGAIN,
) -> None:
    """Refuse weights that are missing, of another shape or kind, or not finite."""
    for name, shape in expected.items():
        weight = weights.get(name)
        where = f"{path}: tensor {prefix}{name}"
        if weight is None or tuple(weight.shape) != shape:
            got = "is missing" if weight is None else f"has shape {list(weight.shape)}"
            raise CheckpointError(
                f"{where} {got}; expected shape {list(shape)}: {next_step}"
            )
        checked = weight
        if weight.dtype == np.int8:
            scale = weights.get(name + SCALE)
            sizes = (
                (shape[0], shape[1] // group_of(shape[1])) if len(shape) == 2 else None
            )
            if scale is None or tuple(scale.shape) != sizes:
                raise CheckpointError(
                    f"{where} is int8 without scales of shape {sizes}: {next_step}"
                )
            checked = scale
            if np.issubdtype(scale.dtype, np.floating):
                # the size of the largest weight that may be restored
                checked = scale.astype(np.float32) * _LARGEST_INT8
        if not np.issubdtype(checked.dtype, np.floating):
            raise CheckpointError(
                f"{where} is {checked.dtype}; expected floating-point numbers:"
                f" {next_step}"
            )
        refuse_absurd(checked, where)


def _refuse_large_scale(head: NDArray[Any], path: Path) -> None:
    """Refuse a head whose logits would not be finite."""
    log_scale = float(head[-2])
    if log_scale > _LARGEST_LOG_SCALE:
        raise CheckpointError(
            f"{path}: tensor {CROSS}{HEAD} has {log_scale:.3g} as the logarithm of a"
            f" scale; expected at most {_LARGEST_LOG_SCALE:.0f}: {AGAIN}"
        )


def refuse_absurd(array: NDArray[Any], where: str) -> None:
    """Refuse NaN, infinity, and weights too large for training or for float32."""
    lowest, highest = float(array.min()), float(array.max())
    most = float(np.finfo(np.float32).max)
    refuse_extremes(lowest, highest, where, "float32", most)
