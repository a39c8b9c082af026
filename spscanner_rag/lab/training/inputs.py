"""Digests of the files that a run learns from: it resumes only with the same content. Paths may change."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from spscanner_rag.checkpoint import locate
from spscanner_rag.checkpoint.file_access import (
    CONFIG,
    DIGESTS,
    PICKLED,
    TOKENIZER,
    WORD_VECTORS,
    read_json,
)
from spscanner_rag.checkpoint.whole_file import current_files
from spscanner_rag.lab.training.start import RunFiles

Inputs = dict[str, str]  # SHA-256 in hexadecimal, by option


def inputs_of(files: RunFiles) -> Inputs:
    """Read all files that a run learns from and compute their digests, about 1.3 seconds for each gigabyte.

    Files that do not exist are left out: the stage refuses them. Files of a base whose digests are in its
    ``config.json`` are not read for this, since loading checks them.
    """
    return {
        "--data": _digest(files.data),
        "--validation": _digest(files.validation),
        "--base": _digest([] if files.base is None else _of_checkpoint(current_files(locate(files.base)))),
        "--config": _digest([files.config] if files.config else []),
        "--word-vectors": _digest([]),  # an option of before: the state of a run that had it is refused
    }


def input_difference(saved: Inputs, inputs: Inputs) -> str | None:
    """The first input that is not the one of a saved state; None if all are. Inputs that are not given pass."""
    for option, digest in inputs.items():
        if saved.get(option) != digest:
            return f"{option} has other content than the state was made with"
    return None


def _of_checkpoint(folder: Path) -> list[Path]:
    section = read_json(folder / CONFIG).get("spscanner")
    recorded = section.get(DIGESTS) if isinstance(section, dict) else None
    checked = recorded if isinstance(recorded, dict) else {}
    weights = [PICKLED, *sorted(path.name for path in folder.glob("*.safetensors"))]
    return [folder / name for name in (CONFIG, TOKENIZER, WORD_VECTORS, *weights) if name not in checked]


def _digest(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        if path.is_file():
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
