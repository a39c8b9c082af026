"""Whether scores are probabilities: calibration error, AUROC, Platt scaling.

A sentence's probability is the sigmoid of its logit. It is calibrated if seven in ten
of the sentences with probability 0.7 are relevant. Most sentences of a long document
are irrelevant, so their probabilities dominate the error; the reliability table shows
every range of probabilities.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spscanner_rag.results.ranking import sigmoid

BINS = 15
THRESHOLD = 0.5
"""A document answers a question if one of its sentences has this probability."""

_NEWTON_STEPS = 100

Floats = NDArray[np.float64]


def bins_of(probabilities: ArrayLike, relevant: ArrayLike, bins: int = BINS) -> Floats:
    """Gather the probabilities of sentences in bins of equal width.

    Bins of several questions can be added.

    Parameters
    ----------
    probabilities, relevant : array_like
        The probability of each sentence, and whether it is relevant: (sentences,).
    bins : int, default 15
        Number of bins.

    Returns
    -------
    (bins, 3)
        Sentences, relevant sentences, and the sum of the probabilities of each bin.

    Examples
    --------
    >>> from spscanner_lab.evidence.calibration import bins_of
    >>> bins_of([0.1, 0.2, 0.9], [False, False, True], bins=2).tolist()
    [[2.0, 0.0, 0.30000000000000004], [1.0, 1.0, 0.9]]
    """
    values = np.asarray(probabilities, np.float64)
    labels = np.asarray(relevant, bool)
    bin_numbers = np.minimum((values * bins).astype(np.int64), bins - 1)
    sentences = np.bincount(bin_numbers, np.ones(len(values)), bins)
    relevant_sentences = np.bincount(bin_numbers, labels, bins)
    sums = np.bincount(bin_numbers, values, bins)
    columns = [sentences, relevant_sentences, sums]
    return np.column_stack(columns).astype(np.float64)


def filled(bins: Floats) -> list[list[float]]:
    """Return the number and the row of each non-empty bin, for `from_filled`."""
    rows: list[list[float]] = []
    for number in np.flatnonzero(bins[:, 0]).tolist():
        sentences, relevant, total = bins[number].tolist()
        rows.append([number, int(sentences), int(relevant), total])
    return rows


def from_filled(rows: Iterable[Sequence[float]]) -> Floats:
    """Return the bins that `filled` was given."""
    bins = np.zeros((BINS, 3))
    for number, *values in rows:
        bins[int(number)] = values
    return bins


def calibration_error(bins: Floats) -> float:
    """Return the expected calibration error, averaged over sentences.

    The error of a bin is |mean probability - share of relevant sentences|.
    """
    return float(np.abs(bins[:, 2] - bins[:, 1]).sum() / bins[:, 0].sum())


def reliability(bins: Floats) -> list[dict[str, float | None]]:
    """Return the bins as a table: edges, mean probability, share of relevant sentences.

    The mean and the share are None in an empty bin.
    """
    edges = pairwise(np.linspace(0, 1, len(bins) + 1).tolist())
    table: list[dict[str, float | None]] = []
    for (low, high), values in zip(edges, bins.tolist(), strict=True):
        count, relevant, total = values
        row = {
            "low": low,
            "high": high,  # exclusive, but 1 belongs to the last bin
            "probability": total / count if count else None,
            "relevant": relevant / count if count else None,
            "sentences": int(count),
        }
        table.append(row)
    return table


def auroc(positive: ArrayLike, negative: ArrayLike) -> float:
    """Return the area under the ROC curve of scores, (questions,) each.

    It is how often a positive is higher than a negative; a tie counts half.

    Examples
    --------
    >>> from spscanner_lab.evidence.calibration import auroc
    >>> auroc([0.9, 0.6], [0.6, 0.1])
    0.875
    """
    positives = np.asarray(positive, np.float64)
    negatives = np.sort(np.asarray(negative, np.float64))
    below = np.searchsorted(negatives, positives, "left")
    not_above = np.searchsorted(negatives, positives, "right")
    lower = below + not_above
    return float(lower.mean() / (2 * len(negatives)))


def fit_platt(logits: ArrayLike, relevant: ArrayLike) -> tuple[float, float]:
    """Fit Platt scaling: the a and b of ``sigmoid(a * logit + b)`` with least log loss.

    Every sentence has the same weight, which preserves the share of relevant ones. The
    convex loss is minimized by Newton's method with step halving.

    Parameters
    ----------
    logits, relevant : array_like
        The logit of each sentence, and whether it is relevant: (sentences,).

    Raises
    ------
    ValueError
        If a logit is not finite, if only one class is there, or if the classes are
        perfectly separable, so that the loss has no minimum.

    Examples
    --------
    >>> from spscanner_lab.evidence.calibration import fit_platt
    >>> scale, shift = fit_platt([-2, -1, 0, 1, 2], [0, 0, 1, 0, 1])
    >>> round(scale, 2), round(shift, 2)
    (1.09, -0.62)
    """
    values = np.asarray(logits, np.float64)
    labels = np.asarray(relevant, bool)
    _check_fittable(values, labels)
    centre = float(values.mean())
    spread = float(values.std())
    features = np.column_stack([(values - centre) / spread, np.ones_like(values)])
    weights = np.array([0.0, np.log(labels.mean() / (1 - labels.mean()))])
    for _ in range(_NEWTON_STEPS):
        logits_now = features @ weights
        probabilities = sigmoid(logits_now)
        gradient = features.T @ (probabilities - labels) / len(labels)
        variance = probabilities * (1 - probabilities)
        curvature = (features * variance[:, None]).T @ features / len(labels)
        step = np.linalg.solve(curvature, gradient)
        if gradient @ step < 1e-22:  # about twice the loss above its minimum
            break
        loss = _log_loss(logits_now, labels)
        while _log_loss(features @ (weights - step), labels) > loss:
            step /= 2
        weights -= step
    slope, shift = weights.tolist()
    return slope / spread, shift - slope * centre / spread


def _check_fittable(values: Floats, labels: NDArray[np.bool_]) -> None:
    if not np.isfinite(values).all():
        raise ValueError("got a logit that is not finite; expected finite ones")
    if labels.all() or not labels.any():
        raise ValueError(
            f"got {int(labels.sum())} relevant of {len(labels)} sentences; expected"
            " some of both kinds"
        )
    relevant = values[labels]
    irrelevant = values[~labels]
    if irrelevant.max() <= relevant.min() or relevant.max() <= irrelevant.min():
        raise ValueError(
            "the classes are perfectly separable, so that no finite scale is best;"
            " expected logits that overlap: take more questions"
        )


def _log_loss(logits: Floats, labels: NDArray[np.bool_]) -> float:
    return float((np.logaddexp(0, logits) - labels * logits).mean())
