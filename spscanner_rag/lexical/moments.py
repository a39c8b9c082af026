"""Mean and deviation of scores, which put scores of several kinds on one scale."""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

_LINEAR_Z = 4.0
"""Z-scores up to this value are used as they are; beyond it they grow with the
logarithm. In a large collection, few sentences share a word with the question: the
deviation is small, and the best z-score grows with its size."""


class Moments(NamedTuple):
    """Mean and standard deviation of the scores of all units."""

    mean: float
    spread: float

    @classmethod
    def of(cls, scores: NDArray[np.floating], least_units: int = 0) -> Self:
        """Compute them from scores.

        Zeros are added to the scores until there are ``least_units``.

        Examples
        --------
        >>> Moments.of(np.array([1.0, 3.0])).standardize(np.array([1.0, 2.0, 3.0]))
        array([-1.,  0.,  1.])
        """
        values = scores.astype(np.float64)
        n = max(len(values), least_units, 1)
        n_zeros = n - len(values)
        mean = values.sum() / n
        squares = np.square(values - mean).sum() + n_zeros * mean**2
        return cls(mean, np.sqrt(squares / n))

    def standardize(self, scores: NDArray[np.floating]) -> NDArray[np.float64]:
        """Z-scores, (units,), which are 0 if all scores are equal."""
        values = scores.astype(np.float64)
        if self.spread < 1e-9:
            return np.zeros(len(values))
        return (values - self.mean) / self.spread


def moments_of(
    scores: Sequence[NDArray[np.floating]], least_units: int
) -> tuple[Moments, ...]:
    """The moments of the units' scores and of those of their surroundings.

    ``scores`` has the units' own first.
    """
    of_units, *of_surroundings = scores
    moments = [Moments.of(of_units, least_units)]
    for values in of_surroundings:
        # Equal scores, as the surroundings in a short text have, must become 0, so no
        # zeros are added to them.
        differ = bool((np.abs(np.diff(values)) > 1e-9).any())
        moments.append(Moments.of(values, least_units if differ else 0))
    return tuple(moments)


def standardized_by(
    moments: Sequence[Moments], scores: Sequence[NDArray[np.float64]]
) -> list[NDArray[np.float64]]:
    """The z-scores of each array of scores, by its moments: (units,)."""
    z_scores = []
    for moments_of_array, values in zip(moments, scores, strict=True):
        z_scores.append(moments_of_array.standardize(values))
    return z_scores


def tempered(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Z-scores, of which those above `_LINEAR_Z` grow only with the logarithm."""
    result = z.copy()
    large = z > _LINEAR_Z  # Few are.
    result[large] = _LINEAR_Z + np.log1p(z[large] - _LINEAR_Z)
    return result
