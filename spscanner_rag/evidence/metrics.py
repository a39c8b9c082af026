"""How good a ranking of units is, for one question: each unit is relevant or it is not."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

CUTOFFS = (1, 5, 10, 50)
"""The paper's cut-offs (Table 5)."""


class Measure(NamedTuple):
    """What was measured: "recall", "precision", "ndcg", "success" or "mrr", among the best ``k``.

    ``k`` is None for the reciprocal rank in the whole ranking.
    """

    metric: str
    k: int | None


def best_first(scores: NDArray[np.floating]) -> NDArray[np.int64]:
    """Unit numbers from the highest score to the lowest, of equal ones the earlier unit first: (units,).

    Raises
    ------
    ValueError
        If a score is no number.
    """
    scores = np.asarray(scores, np.float64)
    if np.isnan(scores).any():
        raise ValueError(
            f"{int(np.isnan(scores).sum())} of {len(scores)} scores are not numbers; expected all to be"
        )
    return np.argsort(-scores, kind="stable").astype(np.int64)


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
    ranked = _ranked_relevance(scores, relevant, cutoffs)
    return {k: float(ranked[:k].sum() / ranked.sum()) for k in cutoffs}


def ranking_metrics(
    scores: NDArray[np.floating], relevant: NDArray[np.bool_], cutoffs: Sequence[int] = CUTOFFS
) -> dict[Measure, float]:
    """Recall, precision, nDCG, success and reciprocal rank among the best k, for each k; all from 0 to 1.

    Parameters
    ----------
    scores : (units,)
        Higher is better; of equal scores the earlier unit comes first.
    relevant : (units,)
    cutoffs : sequence of int
        Each at least 1.

    Returns
    -------
    dict
        For each k ``recall`` (share of the relevant units found), ``precision`` (share of the k that are
        relevant; places beyond the last unit count as not relevant), ``ndcg`` (gain 1, discount
        ``log2(rank + 1)``), ``success`` (1 if a relevant one is among them) and ``mrr`` (1 / rank of the first
        relevant one, 0 if that is beyond k); and ``Measure("mrr", None)``, over the whole ranking. The mean of
        the reciprocal ranks of many questions is the MRR.

    Raises
    ------
    ValueError
        As `recall_at`.
    """
    ranked = _ranked_relevance(scores, relevant, cutoffs)
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
    """Refuse a cut-off below 1.

    Raises
    ------
    ValueError
        Naming it.
    """
    if min(cutoffs, default=1) < 1:
        raise ValueError(f"got the cut-off {min(cutoffs)}; expected at least 1")


def _ranked_relevance(
    scores: NDArray[np.floating], relevant: NDArray[np.bool_], cutoffs: Sequence[int]
) -> NDArray[np.bool_]:
    """Relevance in the order of the ranking: (units,)."""
    if scores.ndim != 1 or scores.shape != relevant.shape:
        raise ValueError(f"got {len(scores)} scores for {len(relevant)} units; expected one each")
    if relevant.dtype != np.bool_:
        raise ValueError(f"got relevance of type {relevant.dtype}; expected bool, one for each unit")
    order = best_first(scores)
    check_cutoffs(cutoffs)
    if not relevant.any():
        raise ValueError("got no relevant unit; recall needs at least one")
    return relevant[order]
