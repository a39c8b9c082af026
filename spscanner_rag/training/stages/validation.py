"""Recall of a model on documents it was not trained on."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from spscanner_rag.evidence.metrics import CUTOFFS, recall_at
from spscanner_rag.evidence.questions import relevant_units
from spscanner_rag.evidence.sampling import Asked, by_document
from spscanner_rag.scanner import Scanner

Recall = dict[int, float]


def validate(
    scanner: Scanner,
    sample: Mapping[str, Sequence[Asked]],
    progress: Callable[[], None] | None = None,
) -> dict[str, Recall]:
    """Mean recall at 1, 5, 10 and 50 by source, and their mean over sources under "macro".

    Parameters
    ----------
    scanner : Scanner
    sample : dict
        From `spscanner_rag.evidence.sampling.sample_questions`.
    progress : callable, optional
        Called after every document.
    """
    recalls = {}
    for source, pairs in sample.items():
        values: list[Recall] = []
        for document, questions in by_document(pairs):
            results = scanner.scan_many([(question.text, document.text) for question in questions])
            for question, result in zip(questions, results, strict=True):
                relevant = relevant_units(result.starts, result.ends, question.evidence)
                if relevant.any():
                    values.append(recall_at(result.logits, relevant))
            if progress is not None:
                progress()
        recalls[source] = mean_recall(values)
    recalls["macro"] = mean_recall(list(recalls.values()))
    return recalls


def mean_recall(values: list[Recall]) -> Recall:
    """The mean at each cut-off; 0 without values."""
    return {k: float(np.mean([value[k] for value in values])) if values else 0.0 for k in CUTOFFS}
