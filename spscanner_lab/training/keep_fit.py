"""Fits the scores that people cut at: the weights of ``spscanner.keep``."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.results.ranking import sigmoid
from spscanner_rag.text.keep_scale import KeepScale, answer_log_odds

BETAS = {"strict": 1 / 3, "balanced": 1.0, "generous": 3.0}
"""How many times as much recall counts as precision, at the threshold of a preset."""

_RIDGE = 1e-3  # times half the squared weights is added to the loss of a question
_STEPS = 50
_CUTS = 2000  # thresholds that are tried, at quantiles of the scores


class ScoredQuestion(NamedTuple):
    """The sentences of one question on one text.

    Parameters
    ----------
    logits : array of float (sentences,)
    relevant : array of bool (sentences,)
        Whether each overlaps the evidence.
    sizes : array of float (sentences,)
        Their characters.
    answerable : float
        The probability that the text answers.
    """

    logits: NDArray[np.float64]
    relevant: NDArray[np.bool_]
    sizes: NDArray[np.float64]
    answerable: float


def fitted_keep_scale(questions: Sequence[ScoredQuestion]) -> KeepScale:
    """Fit the weights of relative scores, and the thresholds of the presets.

    The weights are those of a logistic regression of relevance. Each threshold has the
    highest F of its beta in `BETAS`, counted in characters over all questions; the bias
    is moved so that "balanced" cuts at 0.5.

    Parameters
    ----------
    questions : sequence of ScoredQuestion
        With evidence and without, on whole documents and on parts of them.

    Examples
    --------
    >>> question = ScoredQuestion(
    ...     np.array([2.0, -2.0]), np.array([True, False]), np.array([10.0, 10.0]), 0.8
    ... )
    >>> scale = fitted_keep_scale([question, question])
    >>> scale.scores(question.logits, 0.8).round().tolist()
    [1.0, 0.0]
    """
    inputs = np.concatenate([_inputs(question) for question in questions])
    relevant = np.concatenate([question.relevant for question in questions])
    sizes = np.concatenate([question.sizes for question in questions])
    weights = _logistic(inputs, relevant.astype(np.float64), len(questions))
    exponents = inputs @ weights
    cut_by_preset: dict[str, float] = {}
    for preset, beta in BETAS.items():
        cut_by_preset[preset] = _best_cut(exponents, relevant, sizes, beta)
    balanced = cut_by_preset["balanced"]
    return KeepScale(
        logit=round(float(weights[0]), 3),
        best=round(float(weights[1]), 3),
        answerable=round(float(weights[2]), 3),
        bias=round(float(weights[3] - balanced), 3),
        strict=_score(max(cut_by_preset["strict"] - balanced, 0.0)),
        generous=_score(min(cut_by_preset["generous"] - balanced, 0.0)),
    )


def _inputs(question: ScoredQuestion) -> NDArray[np.float64]:
    """The logit, the best one, the log-odds of an answer and 1: (sentences, 4)."""
    columns = np.empty((len(question.logits), 4))
    columns[:, 0] = question.logits
    columns[:, 1] = question.logits.max()
    columns[:, 2] = answer_log_odds(question.answerable)
    columns[:, 3] = 1.0
    return columns


def _logistic(
    inputs: NDArray[np.float64], targets: NDArray[np.float64], n_questions: int
) -> NDArray[np.float64]:
    """The weights of a logistic regression, by Newton's steps: (inputs,)."""
    n_inputs = inputs.shape[1]
    weights = np.zeros(n_inputs)
    ridge = 2 * _RIDGE * np.eye(n_inputs)
    for _ in range(_STEPS):
        chances = sigmoid(inputs @ weights)
        slope = inputs.T @ (chances - targets) / n_questions + ridge @ weights
        spread = (inputs * (chances * (1 - chances))[:, None]).T @ inputs
        step = np.linalg.solve(spread / n_questions + ridge, slope)
        weights = weights - step
        if np.abs(step).max() < 1e-9:
            break
    return weights


def _best_cut(
    exponents: NDArray[np.float64],
    relevant: NDArray[np.bool_],
    sizes: NDArray[np.float64],
    beta: float,
) -> float:
    """The threshold with the highest F."""
    cuts = np.quantile(exponents, np.linspace(0.5, 0.9999, _CUTS))
    n_right = float(sizes[relevant].sum())
    best_f = -1.0
    best_cut = 0.0
    for cut in cuts:
        is_kept = exponents >= cut
        n_kept = float(sizes[is_kept].sum())
        n_both = float(sizes[is_kept & relevant].sum())
        weighed = (1 + beta**2) * n_both / max(beta**2 * n_right + n_kept, 1e-9)
        if weighed > best_f:
            best_f = weighed
            best_cut = float(cut)
    return best_cut


def _score(exponent: float) -> float:
    return round(float(sigmoid(np.array(exponent))), 3)
