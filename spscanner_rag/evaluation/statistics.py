"""Means over questions and sources with bootstrap intervals, and a paired test of two retrievers.

Questions on one document are not independent of each other: a document that suits a retriever lifts all of its
questions. So documents, not questions, are resampled: an interval comes from drawing a source's documents with
replacement, each with all of its questions, and taking the percentiles of the means. Sources are taken as given
and never resampled. Where a source has a single document, its questions are resampled instead, and the interval
says nothing about other documents; where it has a single question, there is no interval.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

RESAMPLES = 2_000
LEVEL = 0.95
_BLOCK = 1 << 20  # numbers drawn at a time, to bound memory

Average = Literal["macro", "micro"]


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Sample:
    """A value for each of a source's questions, and the document that each question is about.

    Parameters
    ----------
    values : (questions,)
        Finite numbers.
    documents : sequence of str
        Document ids, one for each question.

    Raises
    ------
    ValueError
        If there is no question, a value is not finite, or the lengths differ.
    """

    values: NDArray[np.float64]
    documents: tuple[str, ...]

    def __init__(self, values: ArrayLike, documents: Sequence[str]) -> None:
        object.__setattr__(self, "values", np.array(values, np.float64))
        object.__setattr__(self, "documents", tuple(documents))
        if self.values.shape != (len(self.documents),):
            raise ValueError(
                f"got values of shape {self.values.shape} and {len(self.documents)} documents; "
                "expected one of each for every question"
            )
        if not len(self.documents):
            raise ValueError("got no question; expected at least one")
        if not np.isfinite(self.values).all():
            place = int(np.flatnonzero(~np.isfinite(self.values))[0])
            raise ValueError(
                f"the value of question {place} is {self.values[place]}; expected a finite number"
            )

    @property
    def questions(self) -> int:
        """How many questions there are."""
        return len(self.documents)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean, the interval it lies in, and what it rests on; no interval (None) for a single question."""

    value: float
    low: float | None
    high: float | None
    questions: int
    documents: int


@dataclass(frozen=True, slots=True)
class PairedTest:
    """How much better the first retriever is than the second, and how easily chance explains that."""

    difference: Estimate
    p_value: float


def estimate(sample: Sample, *, resamples: int = RESAMPLES, level: float = LEVEL, seed: int = 0) -> Estimate:
    """The mean over one source's questions.

    Parameters
    ----------
    sample : Sample
    resamples : int, default 2000
    level : float, default 0.95
        Share of the resampled means inside the interval.
    seed : int, default 0

    Raises
    ------
    ValueError
        If ``resamples`` is below 1, ``level`` is not between 0 and 1, or the seed is negative.
    """
    return _estimate({"": sample}, "micro", resamples, level, seed)


def macro_estimate(
    samples: Mapping[str, Sample], *, resamples: int = RESAMPLES, level: float = LEVEL, seed: int = 0
) -> Estimate:
    """The mean of the sources' means: every source counts the same.

    Parameters
    ----------
    samples : mapping
        A sample for each source.
    resamples : int, default 2000
    level : float, default 0.95
    seed : int, default 0

    Raises
    ------
    ValueError
        If there is no source, or as `estimate`.
    """
    return _estimate(samples, "macro", resamples, level, seed)


def micro_estimate(
    samples: Mapping[str, Sample], *, resamples: int = RESAMPLES, level: float = LEVEL, seed: int = 0
) -> Estimate:
    """The mean over the questions of all sources: every question counts the same (the paper's average).

    Same parameters and errors as `macro_estimate`.
    """
    return _estimate(samples, "micro", resamples, level, seed)


def paired_test(
    first: Mapping[str, Sample],
    second: Mapping[str, Sample],
    average: Average = "macro",
    *,
    flips: int = 10_000,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    seed: int = 0,
) -> PairedTest:
    """Compare two retrievers on the same questions by a sign-flip permutation test.

    If neither retriever were better, the two could be swapped on any document. The test swaps them on every
    document or not, by chance, and counts how often the difference of means is at least as large as the one
    found, in either direction. Up to 13 documents (with the default ``flips``) all ways to swap are tried.

    Parameters
    ----------
    first, second : mapping
        A sample for each source, of the same questions in the same order. For one source, give one.
    average : str, default "macro"
        The mean to compare: "macro" over sources or "micro" over questions.
    flips : int, default 10,000
        How many ways to swap are tried.
    resamples : int, default 2000
        For the interval of the difference, which is that of `macro_estimate` or `micro_estimate`.
    level : float, default 0.95
    seed : int, default 0

    Raises
    ------
    ValueError
        If the sources or the documents of their questions differ, or as `macro_estimate`.
    """
    if average not in ("macro", "micro"):
        raise ValueError(f"average is {average!r}; expected macro or micro")
    if flips < 1:
        raise ValueError(f"flips is {flips}; expected at least 1")
    differences = _differences(first, second)
    difference = _estimate(differences, average, resamples, level, seed)
    share = _shares(differences, average)
    parts = np.concatenate(
        [share[name] * _clusters(sample)[0] for name, sample in sorted(differences.items())]
    )
    return PairedTest(difference, _sign_flip_p(parts, flips, seed))


def _differences(first: Mapping[str, Sample], second: Mapping[str, Sample]) -> dict[str, Sample]:
    if first.keys() != second.keys():
        raise ValueError(
            f"got the sources {sorted(first)} and {sorted(second)}; expected the same for both retrievers"
        )
    for name in first:
        if first[name].documents != second[name].documents:
            raise ValueError(
                f"source {name!r}: got {first[name].questions} and {second[name].questions} questions, or on "
                "other documents; expected the same questions in the same order"
            )
    return {name: Sample(first[name].values - second[name].values, first[name].documents) for name in first}


def _clusters(sample: Sample) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Sum of the values and number of the questions of each document, or question if there is one document."""
    numbers = {name: number for number, name in enumerate(sorted(set(sample.documents)))}
    places = np.array([numbers[name] for name in sample.documents])
    if not places.any():
        places = np.arange(sample.questions)
        return np.sort(sample.values), np.bincount(places)
    counts = np.bincount(places)
    # each document's values in ascending order, so that the order of questions changes no digit
    order = np.lexsort((sample.values, places))
    sums = np.add.reduceat(sample.values[order], np.cumsum(counts) - counts)
    return sums, counts


def _shares(samples: Mapping[str, Sample], average: Average) -> dict[str, float]:
    """What one question of each source counts in the mean."""
    questions = sum(sample.questions for sample in samples.values())
    return {
        name: 1 / questions if average == "micro" else 1 / (sample.questions * len(samples))
        for name, sample in samples.items()
    }


def _estimate(
    samples: Mapping[str, Sample], average: Average, resamples: int, level: float, seed: int
) -> Estimate:
    if not samples:
        raise ValueError("got no source; expected at least one")
    if resamples < 1:
        raise ValueError(f"resamples is {resamples}; expected at least 1")
    if not 0 < level < 1:
        raise ValueError(f"level is {level}; expected a number between 0 and 1, such as 0.95")
    if seed < 0:
        raise ValueError(f"seed is {seed}; expected at least 0")
    share = _shares(samples, average)
    names = sorted(samples)
    value = sum(share[name] * float(_clusters(samples[name])[0].sum()) for name in names)
    questions = sum(sample.questions for sample in samples.values())
    documents = sum(len(set(sample.documents)) for sample in samples.values())
    if all(sample.questions == 1 for sample in samples.values()):
        return Estimate(value, None, None, questions, documents)
    drawn = {name: _drawn(samples[name], resamples, name, seed) for name in names}
    if average == "macro":
        means = sum((sums / counts for sums, counts in drawn.values()), np.zeros(resamples)) / len(samples)
    else:
        totals = np.sum([sums for sums, _ in drawn.values()], axis=0)
        means = totals / np.sum([counts for _, counts in drawn.values()], axis=0)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2]).tolist()
    return Estimate(value, low, high, questions, documents)


def _drawn(
    sample: Sample, resamples: int, name: str, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Sums of values and numbers of questions in each resample: both (resamples,).

    Every source has a random stream of its own, so that its resamples are the same whatever the others are.
    """
    sums, counts = _clusters(sample)
    stream = int.from_bytes(hashlib.sha256(name.encode("utf-8", "replace")).digest()[:8], "big")
    random = np.random.default_rng([seed, stream])
    drawn_sums, drawn_counts = np.empty(resamples), np.empty(resamples, np.int64)
    for start, stop in _blocks(resamples, len(sums)):
        picks = random.integers(len(sums), size=(stop - start, len(sums)))
        drawn_sums[start:stop] = sums[picks].sum(axis=1)
        drawn_counts[start:stop] = counts[picks].sum(axis=1)
    return drawn_sums, drawn_counts


def _sign_flip_p(parts: NDArray[np.float64], flips: int, seed: int) -> float:
    """Two-sided p value of the sum of ``parts``, (documents,), whose signs are chance."""
    # swaps that only round differently are as extreme as what was found
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
    step = max(1, _BLOCK // columns)
    for start in range(0, rows, step):
        yield start, min(start + step, rows)
