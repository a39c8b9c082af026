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
        Each at least 1.

    Raises
    ------
    ValueError
        If no unit is relevant (recall is not defined then), a score is no number, the arrays differ in
        length, or a cut-off is below 1.
    """
    if scores.shape != relevant.shape:
        raise ValueError(f"got {len(scores)} scores for {len(relevant)} units; expected one each")
    if np.isnan(scores).any():
        raise ValueError(
            f"{int(np.isnan(scores).sum())} of {len(scores)} scores are not numbers; expected all to be"
        )
    if min(cutoffs, default=1) < 1:
        raise ValueError(f"got the cut-off {min(cutoffs)}; expected at least 1")
    total = int(relevant.sum())
    if not total:
        raise ValueError("got no relevant unit; recall needs at least one")
    found = np.cumsum(relevant[np.argsort(-scores, kind="stable")])
    return {k: float(found[min(k, len(found)) - 1]) / total for k in cutoffs}
