"""Which files of a folder hold the weights: one file, or several with an index."""

import os
from pathlib import Path
from typing import Final

from spscanner_rag.checkpoint.bounded_files import read_json
from spscanner_rag.checkpoint.errors import CheckpointError
from spscanner_rag.checkpoint.file_names import PICKLED, SAFETENSORS

INDEX: Final = ".index.json"  # ends the name of an index
_FORMATS: Final = (SAFETENSORS, SAFETENSORS + INDEX, PICKLED, PICKLED + INDEX)
_LARGEST_COUNT: Final = 10_000  # of shards; the largest models of the Hub have hundreds


def weight_files(folder: Path) -> dict[Path, frozenset[str] | None]:
    """Return the files that hold a folder's weights.

    The first of ``model.safetensors``, ``model.safetensors.index.json``,
    ``pytorch_model.bin`` and ``pytorch_model.bin.index.json`` that exists decides: if
    it is damaged it is refused, and the next is not tried.

    Returns
    -------
    dict
        The names of the tensors that the index promises, by file; None for the one
        file of a folder without an index.

    Raises
    ------
    CheckpointError
        If there are no weights, or the index is damaged or leads out of the folder.
    """
    for name in _FORMATS:
        path = folder / name
        if not os.path.lexists(path):
            continue
        if name.endswith(INDEX):
            return _shards(path)
        return {path: None}
    raise CheckpointError(
        f"{folder}: no weights there; expected {SAFETENSORS} or {PICKLED}, in one file "
        f"or in several with an index"
    )


def is_pickled(path: Path) -> bool:
    """Return whether a file of weights is a pickle, by its name."""
    return path.suffix == Path(PICKLED).suffix


def _shards(index: Path) -> dict[Path, frozenset[str] | None]:
    """The shards that an index names, with the tensors that it promises in each."""
    weight_map = read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise CheckpointError(
            f"{index}: no weight_map; expected an object from tensors to files"
        )
    names_by_shard: dict[str, set[str]] = {}
    for tensor, shard in weight_map.items():
        _check_shard(index, shard)
        names_by_shard.setdefault(shard, set()).add(tensor)
    if len(names_by_shard) > _LARGEST_COUNT:
        raise CheckpointError(
            f"{index}: names {len(names_by_shard):,} files; expected at most "
            f"{_LARGEST_COUNT:,}"
        )
    return {
        index.with_name(shard): frozenset(names_by_shard[shard])
        for shard in sorted(names_by_shard)
    }


def _check_shard(index: Path, shard: object) -> None:
    """Refuse what is not the name of a file of the index's format, beside the index."""
    ending = Path(index.name.removesuffix(INDEX)).suffix
    is_name = isinstance(shard, str) and shard not in ("", ".", "..")
    if not is_name or any(sign in str(shard) for sign in "/\\:\0"):
        raise CheckpointError(
            f"{index}: got the shard {shard!r:.80}; expected the name of a file next "
            "to the index"
        )
    if not str(shard).endswith(ending):
        raise CheckpointError(
            f"{index}: got the shard {shard!r:.80}; expected a file that ends in "
            f"{ending}"
        )
