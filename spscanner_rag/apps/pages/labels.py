"""Short labels of retrievers and documents that still distinguish them."""

import re
from collections.abc import Sequence
from itertools import takewhile

from spscanner_rag.files.documents import name_of

_PARTS = re.compile(r"([+>])")  # between the retrievers of a hybrid
_TRAILING = re.compile(r"[/\\]+(?=$|\s\(|,\s)")


def short_labels(names: Sequence[str]) -> list[str]:
    """Labels such as "dense:model" for "dense:org/model"; names whose labels would be the same stay."""
    short = ["".join(map(_last_folder, _PARTS.split(name))) for name in names]
    return [label if short.count(label) == 1 else name for label, name in zip(short, names, strict=True)]


def short_names(paths: Sequence[str]) -> list[str]:
    """The documents' names without the folders that all of them are in; a single document keeps its path."""
    names = [name_of(path) for path in paths]
    if len(set(names)) < 2:
        return names
    folders = [name.split("/")[:-1] for name in names]
    shared = len(list(takewhile(lambda parts: len(set(parts)) == 1, zip(*folders, strict=False))))
    return ["/".join(name.split("/")[shared:]) for name in names]


def _last_folder(name: str) -> str:
    kind, colon, model = _TRAILING.sub("", name).partition(":")
    return kind + colon + re.split(r"[/\\]", model)[-1]


def listed(words: Sequence[str]) -> str:
    """Words as a list in a sentence: "a, b and c"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
