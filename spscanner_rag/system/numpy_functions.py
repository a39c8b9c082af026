"""Functions of neural networks in numpy's float32, in place where they can be."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

_VALUES_AT_ONCE: Final = 2**15  # 128 KiB: several such arrays stay in a core's cache

# A rational approximation of the error function between -4 and 4, where it is 1 in
# float32, by powers of the square: that of Eigen, which errs by less than 4e-7.
_ERF_LIMIT: Final = 4.0
_NUMERATOR: Final = (
    -2.72614225801306e-10,
    2.77068142495902e-08,
    -2.10102402082508e-06,
    -5.69250639462346e-05,
    -7.34990630326855e-04,
    -2.95459980854025e-03,
    -1.60960333262415e-02,
)
_DENOMINATOR: Final = (
    -1.45660718464996e-05,
    -2.13374055278905e-04,
    -1.68282697438203e-03,
    -7.37332916720468e-03,
    -1.42647390514189e-02,
)


def gelu_in_place(values: Floats) -> None:
    """Apply the Gaussian error linear unit, ``x * (1 + erf(x / sqrt(2))) / 2``.

    Parameters
    ----------
    values : array of float32
        Contiguous, of any shape.

    Examples
    --------
    >>> import numpy as np
    >>> from spscanner_rag.system.numpy_functions import gelu_in_place
    >>> values = np.array([-1.0, 0.0, 2.0], np.float32)
    >>> gelu_in_place(values)
    >>> values.round(4).tolist()
    [-0.15870000422000885, 0.0, 1.9544999599456787]
    """
    flat = values.reshape(-1)
    if not np.shares_memory(flat, values):
        raise ValueError("values are not contiguous; expected a contiguous array")
    for start in range(0, len(flat), _VALUES_AT_ONCE):
        part = flat[start : start + _VALUES_AT_ONCE]
        factors = _erf(part * np.float32(0.5**0.5))
        factors += 1
        factors *= 0.5
        part *= factors


def _erf(values: Floats) -> Floats:
    """The error function of values, which are overwritten."""
    np.clip(values, -_ERF_LIMIT, _ERF_LIMIT, out=values)
    squares = values * values
    values *= _polynomial(_NUMERATOR, squares)
    values /= _polynomial(_DENOMINATOR, squares)
    return values


def _polynomial(coefficients: tuple[float, ...], values: Floats) -> Floats:
    """A polynomial by Horner's rule, the highest power first."""
    total = values * np.float32(coefficients[0])
    for coefficient in coefficients[1:-1]:
        total += np.float32(coefficient)
        total *= values
    total += np.float32(coefficients[-1])
    return total


def softmax_in_place(values: Floats) -> None:
    """Make the last dimension positive with a sum of 1."""
    values -= values.max(axis=-1, keepdims=True)
    np.exp(values, out=values)
    values /= values.sum(axis=-1, keepdims=True)


def silu_in_place(values: Floats) -> None:
    """Multiply values by their logistic function."""
    # beyond 80, exp would overflow, and the factor is 0 in any sum
    factors = np.exp(-np.maximum(values, np.float32(-80)))
    factors += 1
    values /= factors


def softplus(values: Floats) -> Floats:
    """Return ``log(1 + exp(x))``."""
    return np.logaddexp(values, np.float32(0))
