"""From logits to scores and ranks."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def sigmoid(logits: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Score of each logit, ``1 / (1 + exp(-logit))`` in float64.

    It does not overflow at either end.

    Examples
    --------
    >>> sigmoid(np.array([-1000.0, 0.0, 1000.0]))
    array([0. , 0.5, 1. ])
    """
    values = logits.astype(np.float64)
    tail = np.exp(-np.abs(values))
    return np.asarray(np.where(values >= 0, 1.0, tail) / (1.0 + tail), dtype=np.float64)


def rank(logits: NDArray[np.floating[Any]]) -> NDArray[np.int64]:
    """Sentence indices from the highest logit to the lowest.

    Among equal ones the earlier sentence comes first.

    Examples
    --------
    >>> rank(np.array([0.1, 2.0, -1.0, 2.0])).tolist()
    [1, 3, 0, 2]
    """
    return np.argsort(-logits, kind="stable").astype(np.int64)


def best_first(scores: Sequence[float]) -> list[tuple[int, float]]:
    """Indices and scores of documents, highest score first.

    Among equal scores the earlier document comes first.
    """
    return sorted(enumerate(scores), key=lambda document: -document[1])
