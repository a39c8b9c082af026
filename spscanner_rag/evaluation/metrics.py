"""How much of the evidence a ranking finds."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

CUTOFFS = (1, 5, 10, 50)
"""The paper's cut-offs (Table 5)."""


def recall_at(
    scores: NDArray[np.floating], relevant: NDArray[np.bool_], cutoffs: Sequence[int] = CUTOFFS
) -> dict[int, float]:
    """Share of the relevant units among the best k, for each k.

    Parameters
    ----------
    scores : (units,)
        Higher is better; of equal scores the earlier unit comes first.
    relevant : (units,)
    cutoffs : sequence of int

    Raises
    ------
    ValueError
        If no unit is relevant: recall is not defined then.
    """
    total = int(relevant.sum())
    if not total:
        raise ValueError("got no relevant unit; recall needs at least one")
    found = np.cumsum(relevant[np.argsort(-scores, kind="stable")])
    return {k: float(found[min(k, len(found)) - 1]) / total for k in cutoffs}
