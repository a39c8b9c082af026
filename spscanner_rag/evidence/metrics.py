"""Metrics of one question's ranking of units, each of them relevant or not."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

CUTOFFS = (1, 5, 10, 50)
"""The paper's cut-offs (Table 5)."""


class Measure(NamedTuple):
    """A metric, such as "recall", among the best ``k``; None for the whole ranking ("mrr")."""

    metric: str
    k: int | None


def best_first(scores: NDArray[np.floating], units: int) -> NDArray[np.int64]:
    """Unit numbers from the highest score to the lowest, among equal ones the earlier unit first: (units,).

    Raises ``ValueError`` if there is not one score for each unit, or a score is NaN.
    """
    scores = np.asarray(scores, np.float64)
    if scores.shape != (units,):
        raise ValueError(f"got {len(scores)} scores for {units} units; expected one each")
    if np.isnan(scores).any():
        raise ValueError(
            f"{int(np.isnan(scores).sum())} of {len(scores)} scores are not numbers; expected numbers"
        )
    return np.argsort(-scores, kind="stable").astype(np.int64)


def recall_at(
    scores: NDArray[np.floating], relevant: NDArray[np.bool_], cutoffs: Sequence[int] = CUTOFFS
) -> dict[int, float]:
    """Share of the relevant units among the best k, for each k: the recall of `ranking_metrics`."""
    measured = ranking_metrics(scores, relevant, cutoffs)
    return {k: measured[Measure("recall", k)] for k in cutoffs}


def ranking_metrics(
    scores: NDArray[np.floating], relevant: NDArray[np.bool_], cutoffs: Sequence[int] = CUTOFFS
) -> dict[Measure, float]:
    """Recall, precision, nDCG, success and reciprocal rank among the best k, for each k; all from 0 to 1.

    Parameters
    ----------
    scores : (units,)
        Higher is better; among equal scores the earlier unit comes first.
    relevant : (units,)
    cutoffs : sequence of int, default (1, 5, 10, 50)
        The numbers k, each at least 1.

    Returns
    -------
    dict
        For each k ``recall`` (share of the relevant units found), ``precision`` (share of the k that are
        relevant; ranks beyond the last unit count as not relevant), ``ndcg`` (gain 1, discount
        ``log2(rank + 1)``), ``success`` (1 if a relevant unit is among the k) and ``mrr`` (1 / rank of the first
        relevant unit, 0 if that is beyond k); and ``Measure("mrr", None)``, over the whole ranking. The mean of
        the reciprocal ranks of many questions is the MRR.

    Raises
    ------
    ValueError
        If no unit is relevant (recall is not defined then), a score is NaN, the arrays differ in length, or a
        cut-off is below 1.
    """
    order = best_first(scores, relevant.size)
    if relevant.dtype != np.bool_ or relevant.ndim != 1:
        got = f"type {relevant.dtype} and shape {relevant.shape}"
        raise ValueError(f"got relevance of {got}; expected a bool for each unit")
    check_cutoffs(cutoffs)
    if not relevant.any():
        raise ValueError("got no relevant unit; recall needs at least one")
    ranked = relevant[order]
    total = int(ranked.sum())
    first = int(np.argmax(ranked)) + 1
    discounts = 1.0 / np.log2(np.arange(len(ranked)) + 2.0)
    measured = {Measure("mrr", None): 1.0 / first}
    for k in cutoffs:
        found = int(ranked[:k].sum())
        measured |= {
            Measure("recall", k): found / total,
            Measure("precision", k): found / k,
            Measure("ndcg", k): float(discounts[:k][ranked[:k]].sum() / discounts[: min(k, total)].sum()),
            Measure("success", k): float(found > 0),
            Measure("mrr", k): 1.0 / first if first <= k else 0.0,
        }
    return measured


def check_cutoffs(cutoffs: Sequence[int]) -> None:
    """Raise ``ValueError`` for a cut-off below 1."""
    if min(cutoffs, default=1) < 1:
        raise ValueError(f"got the cut-off {min(cutoffs)}; expected at least 1")
