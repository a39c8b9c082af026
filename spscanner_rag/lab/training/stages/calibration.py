"""Corrections to the level of the logits: a calibrated head after training, and a shift in the loss before it.

The loss reads short stretches, most of them with evidence, and gives relevant sentences more weight, so the
probabilities of a whole document come out too high. `calibrate`, the last step of the evidence stage, reads whole
documents and scales the head so that seven in ten of the sentences with a probability of 0.7 are relevant.

For the same reason the logits of a calibrated base are too low for the loss, by a constant. `loss_shift` finds it,
and the loss adds it; otherwise the first steps would only raise all logits and damage the base.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from spscanner_rag.lab.evidence.calibration import fit_platt
from spscanner_rag.lab.evidence.metrics import CUTOFFS, recall_at
from spscanner_rag.lab.evidence.questions import Asked, by_document
from spscanner_rag.lab.training.data.examples import Example
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.mamba2.reader import read_logits
from spscanner_rag.results.coverage import relevant_units
from spscanner_rag.results.selection import sigmoid
from spscanner_rag.scanner import Scanner

_HALVINGS = 60


def labelled_logits(
    scanner: Scanner, asked: Iterable[Asked]
) -> Iterator[tuple[NDArray[np.float32], NDArray[np.bool_]]]:
    """Logits of the whole document for each question with evidence in units, and which are relevant: (units,)."""
    for document, questions in by_document(asked):
        results = scanner.scan_many([(question.text, document.text) for question in questions])
        for question, result in zip(questions, results, strict=True):
            relevant = relevant_units(result.starts, result.ends, question.evidence)
            if relevant.any():
                yield result.logits, relevant


def calibrate(scanner: Scanner, asked: Iterable[Asked]) -> tuple[float, float] | None:
    """Scale and shift the logits of a scanner in its head, in place, by Platt scaling; no rank changes.

    None, and nothing is changed, if there is too little to learn or relevant sentences do not score higher.
    """
    logits, marks = [np.empty(0, np.float32)], [np.empty(0, bool)]
    for found, relevant in labelled_logits(scanner, asked):
        logits.append(found)
        marks.append(relevant)
    try:
        scale, shift = fit_platt(np.concatenate(logits), np.concatenate(marks))
    except ValueError:
        return None
    if scale <= 0:
        return None
    model = scanner.checkpoint.model
    assert model.binary_head is not None
    with torch.no_grad():
        parts = (model.binary_head, model.lexical_prior, model.surroundings, model.soft_prior)
        for part in filter(None, parts):
            for parameter in part.parameters():
                parameter.mul_(scale)
        model.binary_head.bias.add_(shift)
    return scale, shift


def loss_shift(
    model: ScannerModel, examples: Sequence[Example], positive_weight: float, tokens: int
) -> float:
    """The constant to add to a scanner's logits in the loss, fitted to ``examples``, ``tokens`` at a time."""
    logits = np.concatenate(read_logits(model, [example.sequence for example in examples], tokens))
    relevant = np.concatenate([example.relevant for example in examples])
    return fitted_shift(logits, relevant, positive_weight)


def fitted_shift(logits: NDArray[np.floating], relevant: NDArray[np.bool_], positive_weight: float) -> float:
    """The b for which ``sigmoid(logits + b)``, (sentences,), has the least weighted log loss; 0 for one kind."""
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


Recall = dict[int, float]  # by cut-off


def validate(scanner: Scanner, sample: Mapping[str, Sequence[Asked]]) -> dict[str, Recall]:
    """Mean recall at 1, 5, 10 and 50 by source, and their mean over sources under "macro"."""
    recalls = {
        source: mean_recall([recall_at(*found) for found in labelled_logits(scanner, asked)])
        for source, asked in sample.items()
    }
    return recalls | {"macro": mean_recall(list(recalls.values()))}


def mean_recall(values: list[Recall]) -> Recall:
    """The mean at each cut-off; 0 without values."""
    return {k: float(np.mean([value[k] for value in values])) if values else 0.0 for k in CUTOFFS}
