"""What the scores of a retriever depend on besides texts and questions: its parameters and its model's files."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from spscanner_rag.baselines.cascade import Cascade
from spscanner_rag.baselines.dense import PRESETS, Preset, installed
from spscanner_rag.baselines.hybrid import Hybrid
from spscanner_rag.lab.retriever_names import NameParts
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Scorer

_CHECKPOINT_FILES = (
    "config.json",
    "tokenizer.json",
    "word_vectors.safetensors",
    "model*.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
)
# not the weights of other runtimes
_MODEL_FILES = ("*.json", "*.safetensors", "*.bin", "*.model", "*.txt", "*.py")
_ROUNDING_ONLY = frozenset({"batch_size", "segment_tokens"})
_TRANSFER_ONLY = frozenset({"timeout", "retries"})  # of a remote scanner
_SERVED = ("id", "sha256", "segmenter", "uses_collection", "window_tokens", "dtype")
"""What a server says of its model, except for the device."""


def identity_of(name: str, scorer: Scorer) -> dict[str, Any]:
    """Identify a retriever, as JSON: by its name on the command line, and what `scorer_of` loaded for it.

    ``parameters`` are such as BM25's k1, ``files`` the SHA-256 of each file of its model by folder and name, and
    ``parts`` the same of the retrievers that it is made of. Models from the Hub are in the cache by now.
    """
    kind, model, parts = NameParts.of(name)
    identity: dict[str, Any] = {"parameters": _parameters(scorer)}
    if isinstance(scorer, Hybrid | Cascade):
        own = zip(parts, scorer.scorers, strict=True)
        return identity | {"parts": [{"name": part, **identity_of(part, one)} for part, one in own]}
    if isinstance(scorer, Scanner):
        tokenizer = scorer.checkpoint.tokenizer.to_str()  # some published checkpoints have no file of it
        files = _digests([scorer.checkpoint.files], _CHECKPOINT_FILES)
        return identity | {"files": files, "tokenizer": hashlib.sha256(tokenizer.encode()).hexdigest()}
    match kind:
        case "dense" | "latechunking" | "lateinteraction":
            files = _digests(_dense_folders(model or "minilm"), _MODEL_FILES)
        case "mamba":
            files = _digests(_folder(model), _CHECKPOINT_FILES)
        case "crossencoder" | "blocksearch":
            files = _digests(_folder(model), _MODEL_FILES)
        case "remote":
            served = scorer._model  # type: ignore[attr-defined]  # also shows whether the server is there
            return identity | {"model": {name: served[name] for name in _SERVED}}
        case "propositions":
            files = _digests([*_folder(model), *_dense_folders("minilm")], _MODEL_FILES)
        case _:
            return identity
    return identity | {"files": files}


def _parameters(scorer: Scorer) -> dict[str, Any]:
    """The public attributes that JSON can hold; of a scanner, what it was loaded with besides its checkpoint."""
    if isinstance(scorer, Scanner):
        return {"window_tokens": scorer.window_tokens, "segmenter": type(scorer.reading.segmenter).__name__}
    values = vars(scorer) if hasattr(scorer, "__dict__") else {}
    found = {}
    for name, value in sorted(values.items()):
        plain = value.tolist() if hasattr(value, "tolist") else value
        if not name.startswith("_") and name not in _ROUNDING_ONLY | _TRANSFER_ONLY and _is_plain(plain):
            found[name] = plain
    return found


def _is_plain(value: object) -> bool:
    if isinstance(value, list):
        return all(_is_plain(one) for one in value)
    return value is None or isinstance(value, str | int | float | bool)


def _dense_folders(model: str) -> list[Path]:
    preset = PRESETS.get(model, Preset(model))
    found = []
    for name in (preset.model, preset.query_model):
        if name is not None:
            found += _folder(installed(name))
    return found


def _folder(name: str) -> list[Path]:
    """The folder of a model: a local one, or that in the cache of the Hub; none if there is neither."""
    local = Path(name).expanduser()
    if local.is_dir():
        return [local]
    from huggingface_hub import snapshot_download

    try:
        return [Path(snapshot_download(name, local_files_only=True))]
    except Exception:  # the library's own kinds differ between versions
        return []


def _digests(folders: Iterable[Path], patterns: Iterable[str]) -> dict[str, str]:
    """SHA-256 of the files of models, also of those in the folders that ``modules.json`` names."""
    found: dict[str, str] = {}
    for number, folder in enumerate(folders):
        place = f"{folder.name} {number + 1}" if number else folder.name  # several may be called "model"
        for part in (folder, *_module_folders(folder)):
            files = {path for pattern in patterns for path in part.glob(pattern) if path.is_file()}
            for path in sorted(files):
                with path.open("rb") as file:
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
                found[f"{place}/{path.relative_to(folder).as_posix()}"] = digest
    return found


def _module_folders(folder: Path) -> list[Path]:
    try:
        modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
        paths = [module["path"] for module in modules]
    except (OSError, ValueError, TypeError, KeyError):
        return []
    return [folder / path for path in paths if path]
