"""What the tensors of a model must be: names, shapes, and sizes of their numbers."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spscanner_rag.checkpoint.errors import CheckpointError

LARGEST_WEIGHT: Final = 1e6
"""No weight of a trained model comes near this; a flipped bit in an exponent makes
1e10 to 1e38."""

UNUSED: Final = frozenset({"lm_head.weight"})


@dataclass(frozen=True, slots=True)
class TensorHeader:
    """One tensor of a file, before it is read.

    ``readable`` if it is dense and floating-point.
    """

    file: Path
    stored_name: str
    shape: tuple[int, ...]
    dtype: str
    readable: bool


def verify_headers(
    headers: Mapping[str, TensorHeader],
    expected: Mapping[str, tuple[int, ...]],
    folder: Path,
) -> None:
    """Check that a checkpoint has exactly the expected tensors, by name and shape.

    ``lm_head.weight`` may be there besides.
    """
    unseen = dict(headers)
    for name, shape in expected.items():
        header = unseen.pop(name, None)
        if header is None:
            raise CheckpointError(
                f"{folder}: tensor {name} is missing; expected it with shape"
                f" {list(shape)}"
            )
        where = f"{header.file}: tensor {header.stored_name}"
        if header.shape != shape:
            raise CheckpointError(
                f"{where} has shape {list(header.shape)}; config.json asks for"
                f" {list(shape)}"
            )
        if not header.readable:
            raise CheckpointError(
                f"{where} is {header.dtype}; expected dense float64, float32, float16"
                " or bfloat16"
            )
    extra = [header for name, header in unseen.items() if name not in UNUSED]
    if extra:
        raise CheckpointError(
            f"{extra[0].file}: tensor {extra[0].stored_name} has no place in the model"
            " of config.json"
        )


def refuse_extremes(
    lowest: float, highest: float, where: str, target: str, most: float
) -> None:
    """Refuse NaN, infinity, and weights too large for training or for their dtype.

    Parameters
    ----------
    lowest, highest : float
        The extremes of a tensor.
    where : str
        The file and the tensor, for the message.
    target : str
        The dtype that the model computes in.
    most : float
        The largest number of that dtype.
    """
    largest = max(-lowest, highest)
    if not (math.isfinite(lowest) and math.isfinite(highest)):
        raise CheckpointError(f"{where} holds NaN or infinity; expected finite weights")
    if largest > LARGEST_WEIGHT:
        raise CheckpointError(
            f"{where} holds a weight of size {largest:.3g}, which no training makes:"
            f" the file is damaged; expected at most {LARGEST_WEIGHT:.0g}; download or"
            " save the checkpoint again"
        )
    if largest > most:
        raise CheckpointError(
            f"{where} holds a weight of size {largest:.3g}, too large for"
            f" {target}; use float32 or bfloat16"
        )
