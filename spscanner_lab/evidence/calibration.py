"""Whether scores are probabilities: calibration error of sentences, unanswerable questions, and Platt scaling.

A sentence's probability is the sigmoid of its logit. It is calibrated if seven in ten
of the sentences with probability 0.7 are relevant. Most sentences of a long document
are irrelevant, so their probabilities dominate the error; the reliability table shows
every range of probabilities.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spscanner_rag.results.selection import sigmoid

BINS = 15
# a document answers a question if the probability of one of its sentences is at least
# this
THRESHOLD = 0.5

_NEWTON_STEPS = 100


def bins_of(
    probabilities: ArrayLike, relevant: ArrayLike, bins: int = BINS
) -> NDArray[np.float64]:
    """Gather probabilities and marks, (sentences,) each, in bins of equal width.

    Bins of questions can be added.

    Returns (bins, 3): sentences, relevant sentences, and the sum of the probabilities.
    """
    p, marks = np.asarray(probabilities, np.float64), np.asarray(relevant, bool)
    places = np.minimum((p * bins).astype(np.int64), bins - 1)
    columns = [np.bincount(places, own, bins) for own in (np.ones(len(p)), marks, p)]
    return np.column_stack(columns).astype(np.float64)


def filled(bins: NDArray[np.float64]) -> list[list[float]]:
    """The number and the row of each non-empty bin, for `from_filled`."""
    return [
        [int(i), int(bins[i, 0]), int(bins[i, 1]), float(bins[i, 2])]
        for i in np.flatnonzero(bins[:, 0])
    ]


def from_filled(rows: Iterable[Sequence[float]]) -> NDArray[np.float64]:
    """The inverse of `filled`."""
    bins = np.zeros((BINS, 3))
    for number, *values in rows:
        bins[int(number)] = values
    return bins


def calibration_error(bins: NDArray[np.float64]) -> float:
    """Expected calibration error: |mean probability - share of relevant| of a bin, averaged over sentences."""
    return float(np.abs(bins[:, 2] - bins[:, 1]).sum() / bins[:, 0].sum())


def reliability(bins: NDArray[np.float64]) -> list[dict[str, float | None]]:
    """The bins as a table: edges, mean probability, share of relevant sentences.

    None in an empty bin.
    """
    edges = pairwise(np.linspace(0, 1, len(bins) + 1).tolist())
    return [
        {
            "low": low,
            "high": high,  # exclusive, but 1 belongs to the last bin
            "probability": total / count if count else None,
            "relevant": relevant / count if count else None,
            "sentences": int(count),
        }
        for (low, high), (count, relevant, total) in zip(
            edges, bins.tolist(), strict=True
        )
    ]


def auroc(positive: ArrayLike, negative: ArrayLike) -> float:
    """Area under the ROC curve of scores, (questions,): how often a positive is higher.

    A tie counts half.
    """
    above, below = (
        np.asarray(positive, np.float64),
        np.sort(np.asarray(negative, np.float64)),
    )
    lower = np.searchsorted(below, above, "left") + np.searchsorted(
        below, above, "right"
    )
    return float(lower.mean() / (2 * len(below)))


def fit_platt(logits: ArrayLike, relevant: ArrayLike) -> tuple[float, float]:
    """Platt scaling: the a and b for which ``sigmoid(a * logit + b)`` has the least log loss; both (sentences,).

    Every sentence has the same weight, which preserves the share of relevant ones. The
    convex loss is minimized by Newton's method with step halving. ``ValueError`` if a
    logit is not finite, if only one class is there, or if the classes are perfectly
    separable, so that the loss has no minimum.
    """
    x, y = np.asarray(logits, np.float64), np.asarray(relevant, bool)
    if not np.isfinite(x).all():
        raise ValueError("got a logit that is not finite; expected finite ones")
    if y.all() or not y.any():
        raise ValueError(
            f"got {int(y.sum())} relevant of {len(y)} sentences; expected some of both"
            " kinds"
        )
    if x[~y].max() <= x[y].min() or x[y].max() <= x[~y].min():
        raise ValueError(
            "the classes are perfectly separable, so that no finite scale is best;"
            " expected logits that overlap: take more questions"
        )
    centre, spread = float(x.mean()), float(x.std())
    features = np.column_stack([(x - centre) / spread, np.ones_like(x)])
    weights = np.array([0.0, np.log(y.mean() / (1 - y.mean()))])
    for _ in range(_NEWTON_STEPS):
        fitted = features @ weights
        p = sigmoid(fitted)
        gradient = features.T @ (p - y) / len(y)
        curvature = (features * (p * (1 - p))[:, None]).T @ features / len(y)
        step = np.linalg.solve(curvature, gradient)
        if gradient @ step < 1e-22:  # about twice the loss above its minimum
            break
        while _log_loss(features @ (weights - step), y) > _log_loss(fitted, y):
            step /= 2
        weights -= step
    slope, shift = weights.tolist()
    return slope / spread, shift - slope * centre / spread


def _log_loss(logits: NDArray[np.float64], y: NDArray[np.bool_]) -> float:
    return float((np.logaddexp(0, logits) - y * logits).mean())
