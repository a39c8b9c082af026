"""How far a base's logits lie from where the loss of the evidence stage wants them.

The loss reads short stretches with evidence in most of them and lets relevant sentences weigh more; a calibrated
scanner's logits are right for whole documents, and so too low for it by some constant. Without that constant the
first steps would do nothing but raise all logits, and what the base knows would suffer.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.mamba2.reader import read_logits
from spscanner_rag.results.selection import sigmoid
from spscanner_rag.training.data.examples import Example

_HALVINGS = 60


def loss_shift(
    model: ScannerModel, examples: Sequence[Example], positive_weight: float, tokens: int
) -> float:
    """What to add to a scanner's logits in the loss, by some of the examples it will be trained on.

    Parameters
    ----------
    model : ScannerModel
    examples : sequence of Example
    positive_weight : float
        How much a relevant sentence weighs in the loss against another.
    tokens : int
        Tokens to read at a time.
    """
    logits = read_logits(model, [example.sequence for example in examples], tokens)
    relevant = [example.relevant for example in examples]
    return fitted_shift(np.concatenate(logits), np.concatenate(relevant), positive_weight)


def fitted_shift(logits: NDArray[np.floating], relevant: NDArray[np.bool_], positive_weight: float) -> float:
    """The b for which ``sigmoid(logits + b)`` has the least weighted log loss; 0 if sentences are of one kind.

    Parameters
    ----------
    logits : (sentences,)
        Finite.
    relevant : (sentences,)
    positive_weight : float
        Of relevant sentences; others weigh 1. With 0 they are as if they were not there.
    """
    if relevant.all() or not relevant.any() or not positive_weight > 0:
        return 0.0
    x = logits.astype(np.float64)
    weights = np.where(relevant, positive_weight, 1.0)
    # the loss is convex in b, and its slope is negative at the lower end and positive at the upper
    reach = abs(x).max() + abs(np.log(weights[relevant].sum() / weights[~relevant].sum())) + 1.0
    low, high = -reach, reach
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if (weights * (sigmoid(x + middle) - relevant)).sum() < 0:
            low = middle
        else:
            high = middle
    return float((low + high) / 2)
