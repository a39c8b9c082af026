"""The arrays of a result: copied, frozen, and refused if they cannot be spans and logits of its text."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spscanner_rag.results.selection import Blocks, is_integer


def frozen(values: ArrayLike, dtype: type[np.generic]) -> NDArray[Any]:
    """A read-only copy."""
    array = np.array(values, dtype=dtype)
    array.setflags(write=False)
    return array


def check_arrays(
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    logits: NDArray[np.float32],
    blocks: Blocks | None,
    characters: int,
) -> None:
    """Raise ``ValueError`` as `ScanResult` says, for a text of so many characters."""
    shapes = (starts.shape, ends.shape, logits.shape)
    if starts.ndim != 1 or len(set(shapes)) != 1:
        raise ValueError(f"starts, ends, logits: got shapes {shapes}; expected one value each per sentence")
    bounds = np.column_stack([starts, ends]).ravel()
    inside = len(bounds) == 0 or (bounds[0] >= 0 and bounds[-1] <= characters)
    if not inside or (starts >= ends).any() or (starts[1:] < ends[:-1]).any():
        raise ValueError(
            f"starts, ends: got spans that overlap, are empty or leave the text of {characters} characters; "
            "expected ascending, disjoint spans of the document that was scanned"
        )
    if not np.isfinite(logits).all():
        raise ValueError(
            f"logits: got {int((~np.isfinite(logits)).sum())} values that are not finite; expected numbers: "
            'check the checkpoint, or scan with dtype="float32"'
        )
    if blocks is not None and (blocks.shape != logits.shape or (blocks[1:] < blocks[:-1]).any()):
        raise ValueError(
            f"blocks: got shape {blocks.shape} for {len(logits)} sentences; expected one number for each, none "
            "smaller than the one before"
        )


def check_tokens_read(tokens: object) -> None:
    """Raise ``ValueError`` unless it is None or a whole number of at least 0."""
    if tokens is not None and not (is_integer(tokens) and tokens >= 0):
        raise ValueError(f"tokens_read: got {tokens!r}; expected a whole number of at least 0, or None")
