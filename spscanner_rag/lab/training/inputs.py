"""Digests of the files that a run learns from: it resumes only with the same content. Paths may change."""

import hashlib
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from tokenizers import Tokenizer

from spscanner_rag.checkpoint import locate
from spscanner_rag.checkpoint.digests import DIGESTS
from spscanner_rag.checkpoint.file_access import (
    CONFIG,
    PICKLED,
    SAFETENSORS,
    SAFETENSORS_INDEX,
    TOKENIZER,
    WORD_VECTORS,
    read_json,
)
from spscanner_rag.checkpoint.whole_file import current_files
from spscanner_rag.lab.training.start import RunFiles

Inputs = dict[str, dict[str, str]]  # SHA-256 in hexadecimal, by option and by file of that option


def inputs_of(files: RunFiles) -> Inputs:
    """Read all files that a run learns from and compute their digests, about 1.3 seconds for each gigabyte.

    Files that do not exist are left out: the stage refuses them. Files of a base whose digests are in its
    ``config.json`` are not read for this, since loading checks them.
    """
    return {
        "--data": _files(files.data),
        "--validation": _files(files.validation),
        "--base": {} if files.base is None else _checkpoint(current_files(locate(files.base))),
        "--config": _files([files.config] if files.config else ()),
        "--word-vectors": _files([files.word_vectors] if files.word_vectors else ()),
    }


def with_tokenizer(inputs: Inputs, tokenizer: Tokenizer) -> Inputs:
    """Add the tokenizer, which is known once the base is loaded or the vocabulary is learned."""
    return inputs | {"tokenizer": {"tokenizer": hashlib.sha256(tokenizer.to_str().encode()).hexdigest()}}


def input_difference(saved: Inputs, inputs: Inputs) -> str | None:
    """The first input that is not the one of a saved state; None if all are. Inputs that are not given pass."""
    for option, given in inputs.items():
        before = saved.get(option, {})
        for place in dict.fromkeys(chain(given, before)):
            if given.get(place) != before.get(place):
                return (
                    f"{option}: got {_shown(given.get(place))} as {place}, the state was made with "
                    f"{_shown(before.get(place))}"
                )
    return None


def _files(paths: Iterable[Path]) -> dict[str, str]:
    """Digests by place."""
    return {f"file {number}": _digest(path) for number, path in enumerate(paths, 1) if path.is_file()}


def _checkpoint(folder: Path) -> dict[str, str]:
    section = read_json(folder / CONFIG).get("spscanner")
    recorded = section.get(DIGESTS) if isinstance(section, dict) else None
    checked = recorded if isinstance(recorded, dict) else {}
    paths = [folder / name for name in (CONFIG, TOKENIZER, WORD_VECTORS)] + _weights(folder)
    return {path.name: _digest(path) for path in paths if path.is_file() and path.name not in checked}


def _weights(folder: Path) -> list[Path]:
    """The files that the weights are read from."""
    if (folder / SAFETENSORS).is_file():
        return [folder / SAFETENSORS]
    if (folder / SAFETENSORS_INDEX).is_file():
        return [folder / SAFETENSORS_INDEX, *sorted(folder.glob("model-*-of-*.safetensors"))]
    return [folder / PICKLED]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _shown(digest: str | None) -> str:
    return "nothing" if digest is None else f"SHA-256 {digest[:12]}..."
