"""Means with bootstrap intervals, and paired tests.

Questions on one document are not independent: a document that suits a retriever lifts
the scores of all its questions. Intervals are therefore percentiles of the means of
resampled documents: a source's documents are drawn with replacement, each with all of
its questions. Sources are fixed and never resampled. If a source has a single document,
its questions are resampled instead, and the interval says nothing about other
documents; if every source has a single question, there is no interval.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Literal, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

RESAMPLES = 2_000
FLIPS = 10_000
LEVEL = 0.95

_BLOCK = 1 << 20  # random numbers drawn at a time, to bound memory

Average = Literal["macro", "micro"]
AVERAGES: tuple[Average, ...] = ("macro", "micro")


class Sample:
    """A finite value for each question of a source, (questions,), and its document."""

    def __init__(self, values: ArrayLike, documents: Sequence[str]) -> None:
        self.values = np.array(values, np.float64)
        self.documents = tuple(documents)  # their ids
        self.questions = len(self.documents)

    @cached_property
    def clusters(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Sums of the values and counts of questions by document.

        By question, if there is one document.
        """
        distinct = sorted(set(self.documents))
        numbers = {doc_id: number for number, doc_id in enumerate(distinct)}
        document_numbers = np.array([numbers[doc_id] for doc_id in self.documents])
        # each document's values are added in ascending order, so that the order of
        # questions changes no digit
        order = np.lexsort((self.values, document_numbers))
        counts = np.bincount(document_numbers)
        if len(distinct) == 1:
            counts = np.ones(len(document_numbers), np.int64)
        firsts = np.cumsum(counts) - counts
        return np.add.reduceat(self.values[order], firsts), counts


class Estimate(TypedDict):
    """A mean, its interval, and the numbers of questions and documents.

    There is no interval for a single question.
    """

    value: float
    ci_low: float | None
    ci_high: float | None
    questions: int
    documents: int


def estimate(
    samples: Mapping[str, Sample], average: Average = "macro", *, seed: int = 0
) -> Estimate:
    """The mean of the sources' means ("macro"), or of all questions ("micro").

    "micro" is the paper's average.

    Examples
    --------
    >>> from spscanner_lab.evaluation.statistics import Sample, estimate
    >>> samples = {"a": Sample([1, 0, 1], ["d1", "d1", "d2"]), "b": Sample([0], ["d3"])}
    >>> round(estimate(samples)["value"], 3)
    0.333
    >>> estimate(samples, "micro")["value"]
    0.5
    """
    value = 0.0
    questions = 0
    documents = 0
    for share, sums in _shares(samples, average):
        value += share * float(sums.sum())
    for sample in samples.values():
        questions += sample.questions
        documents += len(set(sample.documents))
    low = None
    high = None
    if questions > len(samples):
        means = _resampled_means(samples, average, seed)
        low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
    return Estimate(
        value=value, ci_low=low, ci_high=high, questions=questions, documents=documents
    )


def paired_test(
    first: Mapping[str, Sample], second: Mapping[str, Sample], *, seed: int = 0
) -> tuple[Estimate, float]:
    """Compare the macro means of two retrievers on the same questions.

    Returns the first retriever's mean minus the second's, and the two-sided p value of
    this difference by a permutation test. The questions are in the same order.

    If neither retriever were better, their results on any document could be swapped.
    The test swaps them on randomly chosen documents and counts how often the difference
    of means is at least as large as the one found, in either direction. With at most 13
    documents it tries all ways to swap.
    """
    differences = {}
    for source, sample in first.items():
        values = sample.values - second[source].values
        differences[source] = Sample(values, sample.documents)
    difference = estimate(differences, seed=seed)
    parts = [share * sums for share, sums in _shares(differences, "macro")]
    return difference, sign_flip_p(np.concatenate(parts), FLIPS, seed)


def _shares(
    samples: Mapping[str, Sample], average: Average
) -> Iterator[tuple[float, NDArray[np.float64]]]:
    """The weight of a question and the sums of the values by document, by source."""
    questions = 0
    for sample in samples.values():
        questions += sample.questions
    for _, sample in sorted(samples.items()):
        if average == "micro":
            share = 1 / questions
        else:
            share = 1 / (sample.questions * len(samples))
        yield share, sample.clusters[0]


def _resampled_means(
    samples: Mapping[str, Sample], average: Average, seed: int
) -> NDArray[np.float64]:
    """The means of resampled documents: (resamples,).

    A source's random stream depends on its name, so other sources do not change its
    resamples.
    """
    totals = np.zeros(RESAMPLES)
    questions = np.zeros(RESAMPLES)
    means = np.zeros(RESAMPLES)
    for source, sample in sorted(samples.items()):
        sums, counts = sample.clusters
        random = np.random.default_rng([seed, _stream(source)])
        drawn_sums = np.empty(RESAMPLES)
        drawn_counts = np.empty(RESAMPLES)
        for start, stop in _blocks(RESAMPLES, len(sums)):
            picks = random.integers(len(sums), size=(stop - start, len(sums)))
            drawn_sums[start:stop] = sums[picks].sum(axis=1)
            drawn_counts[start:stop] = counts[picks].sum(axis=1)
        totals = totals + drawn_sums
        questions = questions + drawn_counts
        means = means + drawn_sums / drawn_counts
    if average == "macro":
        return means / len(samples)
    return totals / questions


def _stream(source: str) -> int:
    digest = hashlib.sha256(source.encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:8], "big")


def sign_flip_p(parts: NDArray[np.float64], flips: int, seed: int) -> float:
    """Two-sided p value of the sum of ``parts``, (documents,), under random signs.

    It is exact if there are at most ``flips`` ways to choose the signs.

    Examples
    --------
    >>> import numpy as np
    >>> from spscanner_lab.evaluation.statistics import sign_flip_p
    >>> sign_flip_p(np.array([0.2, 0.1, 0.3]), 10_000, seed=0)
    0.25
    """
    # a flip whose sum differs only by rounding is as extreme as the sum at hand
    bound = abs(float(parts.sum())) - 1e-12 * float(np.abs(parts).sum())
    is_exact = len(parts) < 63 and 2 ** len(parts) <= flips
    tries = 2 ** len(parts) if is_exact else flips
    random = np.random.default_rng(seed)
    extreme = 0
    for start, stop in _blocks(tries, len(parts)):
        if is_exact:
            ways = np.arange(start, stop)[:, None]
            flipped = (ways >> np.arange(len(parts))) & 1
        else:
            flipped = random.integers(2, size=(stop - start, len(parts)))
        sums = (1 - 2 * flipped) @ parts
        extreme += int((np.abs(sums) >= bound).sum())
    if is_exact:
        return extreme / tries
    return (extreme + 1) / (tries + 1)


def _blocks(rows: int, columns: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows that each hold a bounded number of values."""
    step = max(1, _BLOCK // columns)
    for start in range(0, rows, step):
        yield start, min(start + step, rows)
