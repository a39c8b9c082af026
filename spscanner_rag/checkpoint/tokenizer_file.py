"""Find and read a tokenizer: the checkpoint's, the caller's, or the paper's."""

import json
import math
import os
from pathlib import Path
from typing import Any, Final, Unpack

from tokenizers import Tokenizer

from spscanner_rag.checkpoint.bounded_files import Check, read_bytes
from spscanner_rag.checkpoint.errors import CheckpointError
from spscanner_rag.checkpoint.file_names import TOKENIZER
from spscanner_rag.checkpoint.hub import HubOptions, download
from spscanner_rag.checkpoint.location import local_path
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.text.encoding import is_fault_of_tokenizers
from spscanner_rag.text.escaping import first_line

PUBLISHED_TOKENIZER: Final = "EleutherAI/gpt-neox-20b"

# bytes; tokenizers with the largest vocabularies have 2**25
_LARGEST_FILE: Final = 2**28
_LARGEST_GROWTH: Final = 64


def find_tokenizer(
    tokenizer: Tokenizer | str | Path | None,
    folder: Path,
    published: bool,
    *,
    check: Check | None = None,
    **hub: Unpack[HubOptions],
) -> Tokenizer:
    """Return the caller's tokenizer, else the checkpoint's own.

    If ``published``, the last choice is that of the paper's scanners.

    ``tokenizer`` is a tokenizer, a ``tokenizer.json``, a folder with one, a Hub id, or
    None.
    """
    if isinstance(tokenizer, Tokenizer):
        return without_limits(tokenizer)
    if tokenizer is not None and not isinstance(tokenizer, str | Path):
        raise CheckpointError(
            f"tokenizer is a {type(tokenizer).__name__}; expected a "
            "tokenizers.Tokenizer, a tokenizer.json, a folder that holds one, or a Hub "
            "id"
        )
    if tokenizer is None:
        if os.path.lexists(folder / TOKENIZER):
            return read_tokenizer(folder / TOKENIZER, check)
        if not published:
            raise CheckpointError(
                f"{folder}: no {TOKENIZER} there; pass tokenizer= (--tokenizer), or add"
                " the file"
            )
    elif (path := local_path(tokenizer, "a tokenizer or its file")) is not None:
        return read_tokenizer(path / TOKENIZER if path.is_dir() else path)
    hub.pop("revision", None)
    try:
        fetched = download(str(tokenizer or PUBLISHED_TOKENIZER), (TOKENIZER,), **hub)
    except CheckpointError as error:
        raise CheckpointError(
            f"no tokenizer for {folder}: {error}; or pass tokenizer=PATH (--tokenizer"
            " PATH)"
        ) from None
    return read_tokenizer(fetched / TOKENIZER)


def read_tokenizer(path: Path, check: Check | None = None) -> Tokenizer:
    """Read a ``tokenizer.json`` after `Digests.check`.

    Truncation, padding and dropout are switched off.
    """
    return tokenizer_of(read_bytes(path, _LARGEST_FILE, check), path)


def tokenizer_of(content: bytes, path: Path) -> Tokenizer:
    """Parse the content of a ``tokenizer.json``, which was read from this path."""
    try:
        tokenizer = without_limits(Tokenizer.from_buffer(content))
        normalizer = tokenizer.normalizer
        growth = (
            _growth(json.loads(normalizer.__getstate__()))
            if normalizer is not None
            else 1.0
        )
        if growth > _LARGEST_GROWTH:  # it could fill the memory
            raise ValueError(
                f"its normalizer can make a text {growth:.3g} times as long, expected"
                f" at most {_LARGEST_GROWTH}"
            )
        if (times := _times_of_text(tokenizer)) != 1:
            raise ValueError(
                f"its post-processor has a text {times:,} times, expected once"
            )
    except BaseException as error:
        if not is_fault_of_tokenizers(error):
            raise
        raise CheckpointError(
            f"{path}: not a tokenizer ({first_line(error)}); expected a {TOKENIZER} of"
            " the tokenizers library"
        ) from None
    return tokenizer


def without_limits(tokenizer: Tokenizer) -> Tokenizer:
    """Return the tokenizer without truncation, padding and dropout.

    A copy, if it had any of these.
    """
    random = [
        name for name in ("dropout", "alpha") if getattr(tokenizer.model, name, None)
    ]
    if tokenizer.truncation is None and tokenizer.padding is None and not random:
        return tokenizer
    tokenizer = Tokenizer.from_str(tokenizer.to_str())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    for name in random:
        setattr(tokenizer.model, name, None)
    return tokenizer


def _growth(normalizer: dict[str, Any]) -> float:
    """The largest factor by which a normalizer may lengthen a text.

    It follows from what its replacements insert.
    """
    match normalizer:
        case {"type": "Sequence", "normalizers": list(parts)}:
            return math.prod(map(_growth, parts))
        case {
            "type": "Replace",
            "pattern": {"String": str(pattern)},
            "content": str(content),
        }:
            if not pattern:
                return math.inf
            return max(1.0, len(content) / len(pattern))
        # a regular expression may match one character
        case {
            "type": "Replace",
            "content": str(content),
        }:
            return max(1.0, len(content))
        case {"type": "Prepend", "prepend": str(content)}:
            return 1.0 + len(content)
        case _:
            return 1.0


def _times_of_text(tokenizer: Tokenizer) -> int:
    """How many times a post-processor repeats the tokens of a text."""
    if tokenizer.post_processor is None:
        return 1
    state = json.loads(tokenizer.post_processor.__getstate__())
    times = 1
    for part in state.get("processors", [state]):
        if part["type"] == "TemplateProcessing":
            times *= sum("Sequence" in piece for piece in part["single"])
    return times


def refuse_small_vocabulary(
    config: Mamba2Config, tokenizer: Tokenizer, path: Path
) -> None:
    """Raise `CheckpointError` for token ids beyond the model's vocabulary.

    ``path`` is that of ``config.json``.
    """
    ids = tokenizer.get_vocab(with_added_tokens=True).values()
    highest = max(ids, default=-1)
    if highest >= config.vocab_size:
        raise CheckpointError(
            f"{path}: vocab_size is {config.vocab_size}, the tokenizer has ids up to"
            f" {highest}; expected the tokenizer that the model was trained with"
        )
