"""Means over questions and sources with bootstrap intervals, and paired comparisons of two retrievers.

Questions on one document are not independent: a document that suits a retriever lifts all of its questions. So an
interval comes from drawing a source's documents with replacement, each with all of its questions, and taking the
percentiles of the means. Sources are fixed and never resampled. Where a source has a single document, its
questions are resampled instead, and the interval says nothing about other documents; if every source has a
single question, there is no interval.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spscanner_rag.lab.evaluation.tables import Share

RESAMPLES, FLIPS = 2_000, 10_000
LEVEL = 0.95

_BLOCK = 1 << 20  # numbers drawn at a time, to bound memory

Average = Literal["macro", "micro"]
AVERAGES: tuple[Average, ...] = ("macro", "micro")


class Sample:
    """A finite value for each question of a source, (questions,), and the id of the question's document."""

    def __init__(self, values: ArrayLike, documents: Sequence[str]) -> None:
        self.values, self.documents = np.array(values, np.float64), tuple(documents)
        self.questions = len(self.documents)

    @classmethod
    def of(cls, pairs: Sequence[tuple[float, str]]) -> "Sample":
        """The sample of pairs of a value and the id of a document."""
        return cls([value for value, _ in pairs], [document for _, document in pairs])


class Estimate(Share):
    """A mean, its interval (None for a single question), and the numbers of questions and documents."""

    questions: int
    documents: int


def estimate(samples: Mapping[str, Sample], average: Average = "macro", *, seed: int = 0) -> Estimate:
    """The mean of the sources' means ("macro"), or of all questions ("micro", the paper's average)."""
    value = sum(share * float(sums.sum()) for share, sums in _shares(samples, average))
    questions = sum(sample.questions for sample in samples.values())
    documents = sum(len(set(sample.documents)) for sample in samples.values())
    low = high = None
    if questions > len(samples):
        means = _resampled_means(samples, average, seed)
        low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
    return Estimate(value=value, ci_low=low, ci_high=high, questions=questions, documents=documents)


def paired_test(
    first: Mapping[str, Sample], second: Mapping[str, Sample], *, seed: int = 0
) -> tuple[Estimate, float]:
    """Compare the macro means of two retrievers on the same questions, in the same order, by a permutation test.

    Returns the first retriever's mean minus the second's, and its two-sided p value.

    If neither retriever were better, the two could be swapped on any document. The test swaps them on randomly
    chosen documents and counts how often the difference of means is at least as large as the one found, in
    either direction. With at most 13 documents it tries all ways to swap.
    """
    differences = {
        name: Sample(sample.values - second[name].values, sample.documents) for name, sample in first.items()
    }
    difference = estimate(differences, seed=seed)
    parts = np.concatenate([share * sums for share, sums in _shares(differences, "macro")])
    return difference, sign_flip_p(parts, FLIPS, seed)


def _shares(samples: Mapping[str, Sample], average: Average) -> Iterator[tuple[float, NDArray[np.float64]]]:
    """For each source, the weight of a question and the sums of values by document, as `clusters` gives them."""
    questions = sum(sample.questions for sample in samples.values())
    for _, sample in sorted(samples.items()):
        share = 1 / questions if average == "micro" else 1 / (sample.questions * len(samples))
        yield share, clusters(sample.values, sample.documents)[0]


def _resampled_means(samples: Mapping[str, Sample], average: Average, seed: int) -> NDArray[np.float64]:
    drawn = [
        resampled(sample.values, sample.documents, RESAMPLES, name, seed)
        for name, sample in sorted(samples.items())
    ]
    if average == "macro":
        means: NDArray[np.float64] = np.sum([sums / counts for sums, counts in drawn], axis=0) / len(drawn)
    else:
        totals, questions = (np.sum(parts, axis=0) for parts in zip(*drawn, strict=True))
        means = totals / questions
    return means


def clusters(
    values: NDArray[np.float64], documents: Sequence[str]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Sums of (questions,) by document, or by question if there is one document, and numbers."""
    numbers = {name: number for number, name in enumerate(sorted(set(documents)))}
    places = np.array([numbers[name] for name in documents])
    alone = not places.any()
    # each document's values in ascending order, so that the order of questions changes no digit
    order = np.lexsort((values, places))
    counts = np.ones(len(places), np.int64) if alone else np.bincount(places)
    return np.add.reduceat(values[order], np.cumsum(counts) - counts), counts


def resampled(
    values: NDArray[np.float64], documents: Sequence[str], resamples: int, name: str, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Sums and numbers of questions, (resamples,) each, of a source's resampled documents.

    The random stream depends on the name of the source, so the other sources do not change its resamples.
    """
    sums, counts = clusters(values, documents)
    stream = int.from_bytes(hashlib.sha256(name.encode("utf-8", "replace")).digest()[:8], "big")
    random = np.random.default_rng([seed, stream])
    drawn_sums, drawn_counts = np.empty(resamples), np.empty(resamples, np.int64)
    for start, stop in _blocks(resamples, len(sums)):
        picks = random.integers(len(sums), size=(stop - start, len(sums)))
        drawn_sums[start:stop] = sums[picks].sum(axis=1)
        drawn_counts[start:stop] = counts[picks].sum(axis=1)
    return drawn_sums, drawn_counts


def sign_flip_p(parts: NDArray[np.float64], flips: int, seed: int) -> float:
    """Two-sided p value of the sum of (documents,) if signs are random; exact up to ``flips`` ways."""
    # a flip whose sum differs only by rounding is as extreme as the sum found
    found = abs(float(parts.sum())) - 1e-12 * float(np.abs(parts).sum())
    exact = len(parts) < 63 and 2 ** len(parts) <= flips
    tries = 2 ** len(parts) if exact else flips
    random = np.random.default_rng(seed)
    extreme = 0
    for start, stop in _blocks(tries, len(parts)):
        if exact:
            flipped = (np.arange(start, stop)[:, None] >> np.arange(len(parts))) & 1
        else:
            flipped = random.integers(2, size=(stop - start, len(parts)))
        extreme += int((np.abs((1 - 2 * flipped) @ parts) >= found).sum())
    return extreme / tries if exact else (extreme + 1) / (tries + 1)


def _blocks(rows: int, columns: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows that hold a bounded number of values together."""
    step = max(1, _BLOCK // columns)
    for start in range(0, rows, step):
        yield start, min(start + step, rows)
