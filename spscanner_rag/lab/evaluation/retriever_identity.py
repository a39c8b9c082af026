"""What the scores of a retriever depend on besides texts and questions: its parameters and its model's files."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from spscanner_rag.baselines.combined import Cascade, Hybrid
from spscanner_rag.baselines.dense import PRESETS, Preset, installed
from spscanner_rag.lab.retriever_names import NameParts
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Scorer

# not the weights of other runtimes
_FILES = ("*.json", "*.safetensors", "*.bin", "*.model", "*.txt", "*.py")
_NO_MATTER = frozenset({"batch_size", "segment_tokens", "timeout", "retries"})  # but for rounding
_SERVED = ("id", "sha256", "segmenter", "uses_collection", "window_tokens", "dtype")
"""What a server says of its model, except for the device."""

_DENSE = ("dense", "latechunking", "lateinteraction")


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
        files = _digests([scorer.checkpoint.files])
        return identity | {"files": files, "tokenizer": hashlib.sha256(tokenizer.encode()).hexdigest()}
    if kind == "remote":
        served = scorer._model  # type: ignore[attr-defined]  # also shows whether the server is there
        return identity | {"model": {name: served[name] for name in _SERVED}}
    if kind == "bm25":
        return identity
    models = [] if kind in _DENSE else [model]
    if kind in _DENSE or kind == "propositions":  # which are ranked by all-MiniLM-L6-v2
        embedder = model if kind in _DENSE and model else "minilm"
        preset = PRESETS.get(embedder, Preset(embedder))
        models += [installed(each) for each in (preset.model, preset.query_model) if each]
    return identity | {"files": _digests(filter(None, map(_folder, models)))}


def _parameters(scorer: Scorer) -> dict[str, Any]:
    """The public attributes that JSON can hold; of a scanner, what it was loaded with besides its checkpoint."""
    if isinstance(scorer, Scanner):
        return {"window_tokens": scorer.window_tokens, "segmenter": type(scorer.reading.segmenter).__name__}
    values = vars(scorer) if hasattr(scorer, "__dict__") else {}
    found = {}
    for name, value in sorted(values.items()):
        plain = value.tolist() if hasattr(value, "tolist") else value
        if not name.startswith("_") and name not in _NO_MATTER and _is_plain(plain):
            found[name] = plain
    return found


def _is_plain(value: object) -> bool:
    if isinstance(value, list):
        return all(_is_plain(one) for one in value)
    return value is None or isinstance(value, str | int | float | bool)


def _folder(name: str) -> Path | None:
    """The folder of a model: a local one, or that in the cache of the Hub; None if there is neither."""
    local = Path(name).expanduser()
    if local.is_dir():
        return local
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, local_files_only=True))
    except Exception:  # the library's own kinds differ between versions
        return None


def _digests(folders: Iterable[Path]) -> dict[str, str]:
    """SHA-256 of the files of models, also of those in the folders that ``modules.json`` names."""
    found: dict[str, str] = {}
    for number, folder in enumerate(folders):
        place = f"{folder.name} {number + 1}" if number else folder.name  # several may be called "model"
        for part in (folder, *_module_folders(folder)):
            files = {path for pattern in _FILES for path in part.glob(pattern) if path.is_file()}
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
