"""Whether scores are probabilities: calibration error, unanswerable questions, and the shift that mends it.

A sentence's probability is the sigmoid of its logit. It is calibrated if, of all sentences that get 0.7, seven in
ten are relevant. Most sentences of a long document are relevant to nothing, and their probabilities decide the
error; the reliability table shows the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spscanner_rag.selection import sigmoid

BINS = 15
THRESHOLD = 0.5
"""A document is taken to answer a question if one of its sentences has at least this probability."""

_HALVINGS = 60


class Reliability(NamedTuple):
    """One bin of the probabilities.

    Attributes
    ----------
    low, high
        The probabilities in it: from ``low`` to below ``high``, or to 1 in the last bin.
    probability
        Their mean; None in an empty bin.
    relevant
        Share of the sentences that are relevant; None in an empty bin.
    sentences
        How many.
    """

    low: float
    high: float
    probability: float | None
    relevant: float | None
    sentences: int


@dataclass(frozen=True, eq=False)
class Bins:
    """Probabilities gathered in bins of equal width, so that those of many questions can be added up.

    Attributes
    ----------
    counts, relevant : (bins,)
        Sentences, and relevant ones.
    sums : (bins,)
        Of the probabilities.
    """

    counts: NDArray[np.int64]
    relevant: NDArray[np.int64]
    sums: NDArray[np.float64]

    @classmethod
    def of(cls, probabilities: ArrayLike, relevant: ArrayLike, bins: int = BINS) -> "Bins":
        """Gather the sentences of one question.

        Parameters
        ----------
        probabilities : (sentences,)
            From 0 to 1.
        relevant : (sentences,)
        bins : int, default 15

        Raises
        ------
        ValueError
            If there are no bins, the lengths differ, or a number is no probability.
        """
        p, marks = np.asarray(probabilities, np.float64), np.asarray(relevant, bool)
        if bins < 1:
            raise ValueError(f"got {bins} bins; expected at least 1, such as {BINS}")
        if p.ndim != 1 or p.shape != marks.shape:
            raise ValueError(
                f"got probabilities of shape {p.shape} and marks of {marks.shape}; expected one each"
            )
        if not ((p >= 0) & (p <= 1)).all():
            raise ValueError("got a probability that is not from 0 to 1; expected the sigmoids of logits")
        places = np.minimum((p * bins).astype(np.int64), bins - 1)
        return cls(
            np.bincount(places, minlength=bins),
            np.bincount(places[marks], minlength=bins),
            np.bincount(places, weights=p, minlength=bins).astype(np.float64),
        )

    def __add__(self, other: "Bins") -> "Bins":
        if len(self.counts) != len(other.counts):
            raise ValueError(f"got {len(self.counts)} and {len(other.counts)} bins; expected as many")
        return Bins(self.counts + other.counts, self.relevant + other.relevant, self.sums + other.sums)

    def filled(self) -> list[list[float]]:
        """Number, count, relevant ones and sum of each bin that is not empty: what `from_filled` takes."""
        return [
            [int(i), int(self.counts[i]), int(self.relevant[i]), float(self.sums[i])]
            for i in np.flatnonzero(self.counts)
        ]

    @classmethod
    def from_filled(cls, filled: Sequence[Sequence[float]], bins: int = BINS) -> "Bins":
        """From what `filled` gave."""
        table = np.zeros((bins, 3))
        for number, *values in filled:
            table[int(number)] = values
        return cls(table[:, 0].astype(np.int64), table[:, 1].astype(np.int64), table[:, 2])

    def calibration_error(self) -> float:
        """Expected calibration error: how far mean probability and share of relevant ones are apart in a bin.

        The mean over sentences, from 0 to 1.

        Raises
        ------
        ValueError
            If there is no sentence.
        """
        if not self.counts.any():
            raise ValueError("got no sentence; expected at least one")
        return float(np.abs(self.sums - self.relevant).sum() / self.counts.sum())

    def reliability(self) -> list[Reliability]:
        """The bins as a table."""
        edges = np.linspace(0, 1, len(self.counts) + 1).tolist()
        return [
            Reliability(
                low,
                high,
                float(self.sums[i] / self.counts[i]) if self.counts[i] else None,
                float(self.relevant[i] / self.counts[i]) if self.counts[i] else None,
                int(self.counts[i]),
            )
            for i, (low, high) in enumerate(pairwise(edges))
        ]


def auroc(positive: ArrayLike, negative: ArrayLike) -> float:
    """How often a positive one has the higher score of the two, of equal ones one half; 0.5 is chance.

    Parameters
    ----------
    positive, negative : (questions,)
        Scores, such as the highest probability in the document of answerable and of unanswerable questions.

    Raises
    ------
    ValueError
        If one of them is empty or a score is no number.
    """
    above, below = np.asarray(positive, np.float64), np.sort(np.asarray(negative, np.float64))
    if not len(above) or not len(below):
        raise ValueError(f"got {len(above)} positive and {len(below)} negative scores; expected some of each")
    if np.isnan(above).any() or np.isnan(below).any():
        raise ValueError("got a score that is not a number; expected all to be")
    lower = np.searchsorted(below, above, "left") + np.searchsorted(below, above, "right")
    return float(lower.mean() / (2 * len(below)))


def fit_shift(logits: ArrayLike, relevant: ArrayLike) -> float:
    """What to add to all logits so that their probabilities are right on average.

    It is the b for which ``sigmoid(logit + b)`` has the least log loss; there, as many sentences are relevant as
    the probabilities add up to. The order of the sentences stays as it is.

    Parameters
    ----------
    logits : (sentences,)
        Finite.
    relevant : (sentences,)

    Returns
    -------
    float
        To be added to the bias of a linear head.

    Raises
    ------
    ValueError
        If the lengths differ, a logit is not finite, or there are not both relevant sentences and others.
    """
    x, y = np.asarray(logits, np.float64), np.asarray(relevant, bool)
    if x.ndim != 1 or x.shape != y.shape or not np.isfinite(x).all():
        raise ValueError(
            f"got logits of shape {x.shape} and marks of {y.shape}; expected a finite logit for each mark"
        )
    if y.all() or not y.any():
        raise ValueError(f"got {int(y.sum())} relevant of {len(y)} sentences; expected some of both kinds")
    wanted = float(np.log(y.sum() / (~y).sum()))
    # the sum of the probabilities rises with b: at the first bound it is too small, at the second too large
    low, high = wanted - float(x.max()), wanted - float(x.min())
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if sigmoid(x + middle).sum() < y.sum() else (low, middle)
    return (low + high) / 2
