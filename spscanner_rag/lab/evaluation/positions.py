"""Recall by the place of the evidence in the document, and by the length of the document.

These are the paper's Figures 13 (1.3B model) and 3.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lab.evaluation.statistics import Sample
from spscanner_rag.results.coverage import Spans

POSITION_BINS = 10
LENGTH_EDGES = (0, 10_000, 20_000, 40_000, 80_000, 160_000)
"""Where the bins of document length begin, in characters; the last has no end."""


def position_bins(sentences: Spans, characters: int, bins: int = POSITION_BINS) -> NDArray[np.int64]:
    """For each sentence, the part of the document that its middle is in, counted from 0: (sentences,).

    Raises ``ValueError`` if ``bins`` is below 1, or a sentence is empty or outside the document.
    """
    if bins < 1:
        raise ValueError(f"got {bins} bins; expected at least 1")
    starts, ends = sentences
    bad = np.flatnonzero((starts < 0) | (starts >= ends) | (ends > characters))
    if len(bad):
        span = [int(starts[bad[0]]), int(ends[bad[0]])]
        raise ValueError(f"got the sentence {span} in a document of {characters} characters")
    return np.asarray((starts + ends) * bins // (2 * max(characters, 1)), np.int64)


def recall_by_position(
    sentences: Spans, found: NDArray[np.bool_], characters: int, bins: int = POSITION_BINS
) -> NDArray[np.float64]:
    """The share of a question's evidence sentences that were found, in each part of the document.

    Parameters
    ----------
    sentences : Spans
        The evidence sentences.
    found : (sentences,)
        Which of them were found, such as ``evidence_ranks(...) <= k``.
    characters : int
        Length of the document.
    bins : int, default 10
        Number of equal parts of the document (10: deciles).

    Returns
    -------
    (bins,)
        NaN where the question has no evidence.

    Raises
    ------
    ValueError
        If ``found`` has another length; see also `position_bins`.
    """
    if found.shape != sentences.starts.shape:
        raise ValueError(f"got {len(found)} marks for {len(sentences.starts)} evidence sentences")
    places = position_bins(sentences, characters, bins)
    there = np.bincount(places, minlength=bins)
    seen = np.bincount(places, weights=found, minlength=bins)
    return np.where(there > 0, seen / np.maximum(there, 1), np.nan)


def position_samples(recalls: Sequence[NDArray[np.float64]], documents: Sequence[str]) -> dict[int, Sample]:
    """A sample for each part of the document, from the `recall_by_position` and document of each question.

    A question counts once in every part that holds any of its evidence; parts without a question are left out.

    Raises
    ------
    ValueError
        If the numbers of questions, or of parts, differ.
    """
    if len(recalls) != len(documents):
        raise ValueError(f"got recalls of {len(recalls)} questions and {len(documents)} documents")
    if len({len(recall) for recall in recalls}) > 1:
        raise ValueError("got recalls with different numbers of bins; expected the same for all questions")
    samples = {}
    for part, values in enumerate(np.array(recalls).T):
        present = np.flatnonzero(~np.isnan(values)).tolist()
        if present:
            samples[part] = Sample(values[present], [documents[question] for question in present])
    return samples


def length_samples(
    sample: Sample, lengths: Sequence[int], edges: Sequence[int] = LENGTH_EDGES
) -> dict[int, Sample]:
    """A sample for each bin of document length that has questions, by the edge where the bin begins.

    ``lengths`` are those of each question's document. Bins begin at ``edges``, which ascend; the last has no end.

    Raises
    ------
    ValueError
        If the numbers of questions differ, the edges do not ascend, or a document is shorter than the first.
    """
    if len(lengths) != sample.questions:
        raise ValueError(f"got {len(lengths)} lengths for {sample.questions} questions; expected one each")
    if not edges or any(low >= high for low, high in pairwise(edges)):
        raise ValueError(f"got the edges {list(edges)}; expected at least one, ascending")
    if min(lengths) < edges[0]:
        raise ValueError(
            f"got a document of length {min(lengths)}; expected at least {edges[0]}, the first edge"
        )
    bins = np.searchsorted(edges, lengths, side="right") - 1
    found = {}
    for number in np.unique(bins).tolist():
        inside = np.flatnonzero(bins == number).tolist()
        documents = [sample.documents[question] for question in inside]
        found[edges[number]] = Sample(sample.values[inside], documents)
    return found
