"""Whether scores are probabilities: calibration error of sentences, unanswerable questions, and Platt scaling.

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

from spscanner_rag.results.selection import sigmoid

BINS = 15
THRESHOLD = 0.5
"""A document is taken to answer a question if one of its sentences has at least this probability."""

_NEWTON_STEPS = 100


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


def fit_platt(logits: ArrayLike, relevant: ArrayLike) -> tuple[float, float]:
    """Platt scaling: the a and b for which ``sigmoid(a * logit + b)`` has the least log loss.

    Every sentence counts the same, so that the share of relevant ones stays what it is. Newton's method with
    halved steps, on a loss that is convex.

    Parameters
    ----------
    logits : (sentences,)
        Finite.
    relevant : (sentences,)

    Returns
    -------
    a, b : float
        To be folded into a linear head: ``weight * a`` and ``bias * a + b``.

    Raises
    ------
    ValueError
        If the lengths differ, a logit is not finite, or a threshold parts the relevant sentences from the others
        without an error: the loss has no minimum then.
    """
    x, y = np.asarray(logits, np.float64), np.asarray(relevant, bool)
    if x.ndim != 1 or x.shape != y.shape or not np.isfinite(x).all():
        raise ValueError(
            f"got logits of shape {x.shape} and marks of {y.shape}; expected a finite logit for each mark"
        )
    if y.all() or not y.any():
        raise ValueError(f"got {int(y.sum())} relevant of {len(y)} sentences; expected some of both kinds")
    if x[~y].max() <= x[y].min() or x[y].max() <= x[~y].min():
        raise ValueError(
            "a threshold parts the relevant sentences from the others without an error, so that no finite scale "
            "is best; expected sentences that overlap: take more questions"
        )
    centre, spread = float(x.mean()), float(x.std())
    features = np.column_stack([(x - centre) / spread, np.ones_like(x)])
    slope, shift = _newton(features, y)
    return slope / spread, shift - slope * centre / spread


def _newton(features: NDArray[np.float64], y: NDArray[np.bool_]) -> tuple[float, float]:
    """The minimum of the log loss of ``features @ weights``; it exists."""
    share = y.mean()
    weights = np.array([0.0, np.log(share / (1 - share))])
    loss = _log_loss(features @ weights, y)
    for _ in range(_NEWTON_STEPS):
        p = sigmoid(features @ weights)
        gradient = features.T @ (p - y) / len(y)
        curvature = (features * (p * (1 - p))[:, None]).T @ features / len(y)
        step = np.linalg.solve(curvature, gradient)
        if gradient @ step < 1e-22:  # twice what the loss can still fall by
            break
        size = 1.0
        while size > 1e-10 and (new := _log_loss(features @ (weights - size * step), y)) > loss:
            size /= 2
        if size <= 1e-10:  # as low as its digits allow
            break
        weights, loss = weights - size * step, new
    return float(weights[0]), float(weights[1])


def _log_loss(logits: NDArray[np.float64], y: NDArray[np.bool_]) -> float:
    return float((np.logaddexp(0, logits) - y * logits).mean())
