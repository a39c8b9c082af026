"""Names of several documents that are short enough for a list, and still tell them apart."""

from collections.abc import Sequence

from spscanner_rag.files.documents import name_of


def short_names(paths: Sequence[str]) -> list[str]:
    """The documents' names without the folders that all of them are in; a single document keeps its path."""
    names = [name_of(path) for path in paths]
    if len(set(names)) < 2:
        return names
    folders = [name.split("/")[:-1] for name in names]
    shared = 0
    for parts in zip(*folders, strict=False):
        if len(set(parts)) > 1:
            break
        shared += 1
    return ["/".join(name.split("/")[shared:]) for name in names]
