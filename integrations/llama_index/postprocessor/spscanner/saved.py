"""What is written in place of objects that live in one process only, and what reads it back."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spscanner_rag.scanner import Scanner
from spscanner_rag.text.segmentation import ReferenceSegmenter, SentenceSegmenter

_OBJECT = "object"
_SEGMENTERS = {SentenceSegmenter: "sentence", ReferenceSegmenter: "reference"}


def object_name(value: object) -> dict[str, str]:
    """Stands for an object that has to be given again."""
    kind = value if hasattr(value, "__qualname__") else type(value)
    return {_OBJECT: f"{kind.__module__}.{getattr(kind, '__qualname__', kind)}"}


def refuse_object_name(name: str, value: object) -> None:
    """Raise ``ValueError`` if `object_name` stands where the object should."""
    if isinstance(value, Mapping) and set(value) == {_OBJECT}:
        raise ValueError(
            f"{name}: got the name of {value[_OBJECT]}, which was not saved; expected the object: "
            f"from_dict(data, {name}=...)"
        )


def scanner_fields(scanner: Scanner) -> dict[str, Any]:
    """Fields that load the same scanner again; one from the Hub by its commit."""
    segmenter, checkpoint = scanner.reading.segmenter, scanner.checkpoint
    local = checkpoint.folder == Path(checkpoint.source).expanduser()
    bundled = not local and checkpoint.source == "default"
    options = {
        "window_tokens": scanner.window_tokens,
        "segment_tokens": scanner.segment_tokens,
        "segmenter": _SEGMENTERS.get(type(segmenter)) or object_name(segmenter),
    }
    return {
        "model": None if bundled else checkpoint.source,
        "device": str(scanner.device),
        "dtype": str(scanner.dtype).removeprefix("torch."),
        "model_kwargs": options if local or bundled else {**options, "revision": checkpoint.folder.name},
    }


def plain_kwargs(model_kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `Scanner.from_pretrained` without the token; objects by their names."""
    return {name: _plain(value) for name, value in model_kwargs.items() if name != "token"}


def _plain(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    return value if value is None or isinstance(value, str | int | float | Mapping) else object_name(value)
