"""Validation of the evidence stage: the recall of a scanner on sampled questions."""

from collections.abc import Mapping, Sequence

import numpy as np

from spscanner_rag.lab.evidence.metrics import CUTOFFS, recall_at
from spscanner_rag.lab.evidence.sampling import Asked
from spscanner_rag.lab.training.stages.calibrate import labelled_logits
from spscanner_rag.scanner import Scanner

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
