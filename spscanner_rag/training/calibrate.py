"""The last step of the evidence stage: the head's bias, so that a probability of 0.7 is right seven times in ten.

Weights are trained on short stretches with evidence in most of them and with relevant sentences weighing more than
others, so a whole document's probabilities are too high. Here whole documents are read.
"""

from collections.abc import Iterable

import numpy as np
import torch

from spscanner_rag.evaluation.calibration import fit_shift
from spscanner_rag.evaluation.data import relevant_units
from spscanner_rag.evaluation.sampling import Asked, by_document
from spscanner_rag.scanner import Scanner


def calibrate(scanner: Scanner, asked: Iterable[Asked]) -> float | None:
    """Shift the bias of a scanner's head in place; no sentence's rank changes.

    Parameters
    ----------
    scanner : Scanner
    asked : iterable of (document, question)
        Answerable questions with evidence, on whole documents.

    Returns
    -------
    float or None
        What was added to every logit; None, and nothing changed, if no sentence or every one was relevant.
    """
    logits, marks = [np.empty(0, np.float32)], [np.empty(0, bool)]
    for document, questions in by_document(asked):
        results = scanner.scan_many([(question.text, document.text) for question in questions])
        for question, result in zip(questions, results, strict=True):
            relevant = relevant_units(result.starts, result.ends, question.evidence)
            if relevant.any():
                logits.append(result.logits)
                marks.append(relevant)
    relevant = np.concatenate(marks)
    if relevant.all():  # or there is none
        return None
    shift = fit_shift(np.concatenate(logits), relevant)
    head = scanner.checkpoint.model.binary_head
    assert head is not None
    with torch.no_grad():
        head.bias.add_(shift)
    return shift
