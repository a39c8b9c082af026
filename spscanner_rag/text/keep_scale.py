"""The scores that people cut at: which sentences are worth keeping, from 0 to 1.

A logit says how likely a sentence is to answer among all sentences of a text, which is
rarely above one half. A cut needs another question answered: is it worth keeping, given
the best sentence and whether the text answers at all?
"""

import math
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.text.bounded_numbers import check_numbers

Keep = Literal["strict", "balanced", "generous"]
"""How much a selection keeps: few sentences that are surely right, the best balance of
right ones and missed ones, or most of the right ones."""

BALANCED: Final = 0.5
"""The relative score at which "balanced" cuts, of every checkpoint."""

_LARGEST_WEIGHT: Final = 1e4
_SUREST: Final = 1e-4  # a probability is never nearer to 0 or 1


@dataclass(frozen=True)
class KeepScale:
    """Turns logits into relative scores, and presets into lowest relative scores.

    The object "spscanner.keep" of ``config.json``. The relative score of a sentence is
    the sigmoid of ``bias + logit * l + best * b + answerable * a``: l is the sentence's
    logit, b the best one's, a the log-odds that the text answers. In one selection it
    is in the order of the logits.

    Parameters
    ----------
    logit, best, answerable, bias : float
        The weights. That of the logit is above 0, with that of the best one too.
    strict, generous : float
        The lowest relative scores of these presets, from 0 to 1; `BALANCED` lies
        between them.

    Raises
    ------
    ValueError
        For a weight that is not a number or out of range, or presets out of order.

    Examples
    --------
    >>> scale = KeepScale(logit=1.5, best=-1.0, answerable=1.0, bias=0.5)
    >>> scale.scores(np.float32([2.0, -1.0]), answerable=0.5).round(2).tolist()
    [0.82, 0.05]
    >>> scale.least("balanced")
    0.5
    """

    logit: float = 1.0
    best: float = 0.0
    answerable: float = 0.0
    bias: float = 0.0
    strict: float = 0.75
    generous: float = 0.25

    def __post_init__(self) -> None:
        check_numbers(self, "spscanner.keep", _LARGEST_WEIGHT)
        if self.logit <= 0 or self.logit + self.best <= 0:
            raise ValueError(
                f"spscanner.keep.logit is {self.logit!r}, best {self.best!r}; expected"
                " a logit above 0 that stays above 0 with best added"
            )
        if not 0 <= self.generous <= BALANCED <= self.strict <= 1:
            raise ValueError(
                f"spscanner.keep.strict is {self.strict!r}, generous"
                f" {self.generous!r}; expected generous <= {BALANCED} <= strict, from"
                " 0 to 1"
            )

    def scores(
        self, logits: NDArray[np.float32], answerable: float | None
    ) -> NDArray[np.float64]:
        """Return the relative scores of all sentences of a selection, (sentences,).

        Parameters
        ----------
        logits : array (sentences,)
            Their logits, of all texts that are selected from together.
        answerable : float or None
            The probability that one of the texts answers; None if it is unknown.
        """
        if not len(logits):
            return np.zeros(0)
        return self.scores_below(logits, float(logits.max()), answerable)

    def scores_below(
        self, logits: NDArray[np.float32], best: float, answerable: float | None
    ) -> NDArray[np.float64]:
        """Do as `scores`, for some of the sentences; ``best`` is the highest logit."""
        shared = self.bias + self.best * best
        shared += self.answerable * answer_log_odds(answerable)
        exponents = shared + self.logit * logits.astype(np.float64)
        # The sigmoid, computed by a hyperbolic tangent, which does not overflow.
        return np.asarray((1 + np.tanh(exponents / 2)) / 2, np.float64)

    def least(self, keep: Keep) -> float:
        """Return the lowest relative score that a preset keeps."""
        least_by_preset = {
            "strict": self.strict,
            "balanced": BALANCED,
            "generous": self.generous,
        }
        return least_by_preset[keep]


def answer_log_odds(answerable: float | None) -> float:
    """Return the log-odds that a text answers, 0 if its probability is unknown."""
    if answerable is None:
        return 0.0
    probability = min(max(answerable, _SUREST), 1 - _SUREST)
    return math.log(probability / (1 - probability))


def is_keep(value: object) -> bool:
    """Return whether a value names a preset, or is None."""
    return value is None or (isinstance(value, str) and value in get_args(Keep))
