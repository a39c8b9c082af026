"""Means over questions and sources with bootstrap intervals, and a paired test of two retrievers.

Questions on one document are not independent of each other: a document that suits a retriever lifts all of its
questions. So documents, not questions, are resampled: an interval comes from drawing a source's documents with
replacement, each with all of its questions, and taking the percentiles of the means. Sources are taken as given
and never resampled. Where a source has a single document, its questions are resampled instead, and the interval
says nothing about other documents; where it has a single question, there is no interval.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spscanner_rag.evaluation.resampling import clusters, resampled, sign_flip_p

RESAMPLES = 2_000
LEVEL = 0.95

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
    _check_average(average)
    if flips < 1:
        raise ValueError(f"flips is {flips}; expected at least 1")
    differences = _differences(first, second)
    difference = _estimate(differences, average, resamples, level, seed)
    share = _shares(differences, average)
    parts = np.concatenate([share[name] * _sums(sample) for name, sample in sorted(differences.items())])
    return PairedTest(difference, sign_flip_p(parts, flips, seed))


def paired_ratio(
    first: Mapping[str, Sample],
    second: Mapping[str, Sample],
    average: Average = "macro",
    *,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    seed: int = 0,
) -> Estimate | None:
    """The mean of the second divided by that of the first, on the same questions.

    Both means of a resample are of the same documents, so that what a document adds to both does not widen the
    interval. There is none where a resample's first mean is 0.

    Parameters
    ----------
    first, second : mapping
        As for `paired_test`.
    average : str, default "macro"
        The means to divide: "macro" over sources or "micro" over questions.
    resamples : int, default 2000
    level : float, default 0.95
    seed : int, default 0

    Returns
    -------
    Estimate or None
        None if the first mean is 0.

    Raises
    ------
    ValueError
        As `paired_test`.
    """
    _check_average(average)
    _check_paired(first, second)
    below, above = (_estimate(samples, average, resamples, level, seed) for samples in (first, second))
    if not below.value:
        return None
    low = high = None
    if below.low is not None:
        means = _resampled_means([first, second], average, resamples, seed)
        if means[0].all():
            low, high = _interval(means[1] / means[0], level)
    return Estimate(above.value / below.value, low, high, below.questions, below.documents)


def _check_average(average: str) -> None:
    if average not in ("macro", "micro"):
        raise ValueError(f"average is {average!r}; expected macro or micro")


def _differences(first: Mapping[str, Sample], second: Mapping[str, Sample]) -> dict[str, Sample]:
    _check_paired(first, second)
    return {name: Sample(first[name].values - second[name].values, first[name].documents) for name in first}


def _check_paired(first: Mapping[str, Sample], second: Mapping[str, Sample]) -> None:
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


def _sums(sample: Sample) -> NDArray[np.float64]:
    """Sum of the values of each document, or question if there is one document."""
    return clusters(sample.values[:, None], sample.documents)[0][:, 0]


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
    value = sum(share[name] * float(_sums(samples[name]).sum()) for name in sorted(samples))
    questions = sum(sample.questions for sample in samples.values())
    documents = sum(len(set(sample.documents)) for sample in samples.values())
    if all(sample.questions == 1 for sample in samples.values()):
        return Estimate(value, None, None, questions, documents)
    low, high = _interval(_resampled_means([samples], average, resamples, seed)[0], level)
    return Estimate(value, low, high, questions, documents)


def _resampled_means(
    paired: Sequence[Mapping[str, Sample]], average: Average, resamples: int, seed: int
) -> NDArray[np.float64]:
    """Means in each resample, of which the documents are the same for all: (mappings, resamples)."""
    drawn = {
        name: resampled(
            np.column_stack([samples[name].values for samples in paired]),
            paired[0][name].documents,
            resamples,
            name,
            seed,
        )
        for name in sorted(paired[0])
    }
    if average == "macro":
        totals = sum((sums / counts for sums, counts in drawn.values()), np.zeros((len(paired), resamples)))
        return totals / len(drawn)
    totals = np.sum([sums for sums, _ in drawn.values()], axis=0)
    means: NDArray[np.float64] = totals / np.sum([counts for _, counts in drawn.values()], axis=0)
    return means


def _interval(values: NDArray[np.float64], level: float) -> tuple[float, float]:
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2]).tolist()
    return low, high
