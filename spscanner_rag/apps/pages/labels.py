"""Short labels of retrievers: of a path or a Hub id only its last folder."""

import re
from collections.abc import Sequence

_PARTS = re.compile(r"([+>])")  # between the retrievers of a hybrid
_TRAILING = re.compile(r"[/\\]+(?=$|\s\(|,\s)")


def short_labels(names: Sequence[str]) -> list[str]:
    """A label for each name: "dense:org/model" becomes "dense:model".

    Names whose labels would be the same, such as two folders ``best`` of two runs, stay as they are.
    """
    short = ["".join(map(_last_folder, _PARTS.split(name))) for name in names]
    return [label if short.count(label) == 1 else name for label, name in zip(short, names, strict=True)]


def _last_folder(name: str) -> str:
    kind, colon, model = _TRAILING.sub("", name).partition(":")
    return kind + colon + re.split(r"[/\\]", model)[-1]
