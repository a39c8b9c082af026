"""The last step of the evidence stage: logits are scaled so that of probabilities of 0.7 seven in ten are right.

Weights are trained on short stretches with evidence in most of them and with relevant sentences weighing more than
others, so a whole document's probabilities are too high. Here whole documents are read.
"""

from collections.abc import Iterable

import numpy as np
import torch

from spscanner_rag.evidence.calibration import fit_platt
from spscanner_rag.evidence.questions import relevant_units
from spscanner_rag.evidence.sampling import Asked, by_document
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.scanner import Scanner


def calibrate(scanner: Scanner, asked: Iterable[Asked]) -> tuple[float, float] | None:
    """Scale and shift the logits of a scanner in its head, in place, by Platt scaling; no rank changes.

    Parameters
    ----------
    scanner : Scanner
    asked : iterable of (document, question)
        Answerable questions with evidence, on whole documents.

    Returns
    -------
    tuple of two floats, or None
        Scale and shift. None, and nothing is changed, if the questions give none: there are too few of them, or
        relevant sentences do not score higher than others.
    """
    logits, marks = [np.empty(0, np.float32)], [np.empty(0, bool)]
    for document, questions in by_document(asked):
        results = scanner.scan_many([(question.text, document.text) for question in questions])
        for question, result in zip(questions, results, strict=True):
            relevant = relevant_units(result.starts, result.ends, question.evidence)
            if relevant.any():
                logits.append(result.logits)
                marks.append(relevant)
    try:
        scale, shift = fit_platt(np.concatenate(logits), np.concatenate(marks))
    except ValueError:
        return None
    if scale <= 0:
        return None
    _scale_head(scanner.checkpoint.model, scale, shift)
    return scale, shift


@torch.no_grad()
def _scale_head(model: ScannerModel, scale: float, shift: float) -> None:
    head = model.binary_head
    assert head is not None
    head.weight.mul_(scale)
    head.bias.mul_(scale).add_(shift)
    if model.lexical_prior is not None:
        model.lexical_prior.weight.mul_(scale)
    if model.surroundings is not None:
        model.surroundings.weight.mul_(scale)
        model.surroundings.bias.mul_(scale)
