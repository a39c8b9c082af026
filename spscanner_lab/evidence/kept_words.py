"""Precision and recall of words that a selection keeps, over all questions."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_lab.evidence.questions import Question
from spscanner_rag.results import Passage

_WORD = re.compile(r"\S+")
_RESAMPLES = 2000


class KeptWords(NamedTuple):
    """Words of one question: kept and right, kept, and right."""

    both: int
    kept: int
    right: int


def kept_words(text: str, passages: Sequence[Passage], question: Question) -> KeptWords:
    """Count the words of a text that overlap passages and the evidence of a question.

    Examples
    --------
    >>> passages = [Passage("Ann signed it.", 0, 14, 0.9)]
    >>> question = Question("1", "Who?", ((0, 3),))
    >>> kept_words("Ann signed it. It rained.", passages, question)
    KeptWords(both=1, kept=3, right=1)
    """
    kept = np.zeros(len(text), bool)
    for passage in passages:
        kept[passage.start : passage.end] = True
    right = np.zeros(len(text), bool)
    for start, end in question.evidence:
        right[start:end] = True
    n_both = n_kept = n_right = 0
    for word in _WORD.finditer(text):
        is_kept = kept[word.start() : word.end()].any()
        is_right = right[word.start() : word.end()].any()
        n_both += bool(is_kept and is_right)
        n_kept += bool(is_kept)
        n_right += bool(is_right)
    return KeptWords(n_both, n_kept, n_right)


class Quality(NamedTuple):
    """Precision, recall and F1 over all questions, and the 95 % interval of F1."""

    precision: float
    recall: float
    f1: float
    f1_low: float
    f1_high: float


def quality_of(
    counts: Sequence[KeptWords], documents: Sequence[str], seed: int = 0
) -> Quality:
    """Return the quality of a selection on several questions.

    Parameters
    ----------
    counts : sequence of KeptWords
        Those of each question.
    documents : sequence of str
        The document of each question; intervals resample documents.

    Examples
    --------
    >>> quality = quality_of([KeptWords(2, 4, 2), KeptWords(0, 0, 2)], ["a", "b"])
    >>> quality.precision, quality.recall, quality.f1
    (0.5, 0.5, 0.5)
    """
    names, numbers = np.unique(np.array(documents), return_inverse=True)
    sums = np.zeros((len(names), 3))
    np.add.at(sums, numbers, np.array(counts, float))
    draws = np.random.default_rng(seed).integers(
        len(names), size=(_RESAMPLES, len(names))
    )
    resampled = _ratios(sums[draws].sum(1))[2]
    precision, recall, f1 = _ratios(sums.sum(0))
    low, high = np.percentile(resampled, [2.5, 97.5])
    return Quality(float(precision), float(recall), float(f1), float(low), float(high))


def _ratios(
    sums: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Precision, recall and F1 of sums (..., 3); 0 where nothing is kept or right."""
    both = sums[..., 0]
    kept = sums[..., 1]
    right = sums[..., 2]
    precision = both / np.maximum(kept, 1)
    recall = both / np.maximum(right, 1)
    f1 = 2 * both / np.maximum(kept + right, 1)
    return precision, recall, f1
