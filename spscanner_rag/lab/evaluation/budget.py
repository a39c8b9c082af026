"""What a ranking costs to read: tokens of the best k, and recall within a budget of tokens."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lab.evidence.metrics import CUTOFFS, best_first, check_cutoffs
from spscanner_rag.results.coverage import NEVER, Spans, check_evidence, evidence_ranks

BUDGETS = (250, 500, 1000, 2000)
"""Tokens. The paper's settings, 5 chunks of 300 words and 50 sentences, come to 1,500 to 2,000."""


def tokens_at(
    scores: NDArray[np.floating], tokens: NDArray[np.integer], cutoffs: Sequence[int] = CUTOFFS
) -> dict[int, int]:
    """Tokens of the best k units together, for each k.

    Parameters
    ----------
    scores : (units,)
        Higher is better; among equal scores the earlier unit comes first.
    tokens : (units,)
        Tokens of each unit; the tokens that overlapping units share are counted for each of them.
    cutoffs : sequence of int
        Each at least 1.

    Raises
    ------
    ValueError
        If the arrays differ in length, a score is NaN, a count is negative, or a cut-off is below 1.
    """
    check_cutoffs(cutoffs)
    ranked = tokens[_order(scores, tokens)]
    return {k: int(ranked[:k].sum()) for k in cutoffs}


def units_within(scores: NDArray[np.floating], tokens: NDArray[np.integer], budget: int) -> NDArray[np.int64]:
    """Indices of the units that fit into a budget of tokens, best first.

    Units are taken whole, in the order of the ranking. One that no longer fits is skipped and the next one is
    tried, as `ScanResult.select` does.

    Raises ``ValueError`` if the budget is below 1; see `tokens_at` for the other arguments and errors.
    """
    if budget < 1:
        raise ValueError(f"got a budget of {budget} tokens; expected at least 1")
    order = _order(scores, tokens)
    smallest = int(tokens.min(initial=budget))
    kept, left = [], budget
    for place, cost in enumerate(tokens[order].tolist()):
        if left < smallest:
            break
        if cost <= left:
            kept.append(place)
            left -= cost
    return order[np.array(kept, np.int64)]


def recall_at_budgets(
    units: Spans,
    scores: NDArray[np.floating],
    tokens: NDArray[np.integer],
    sentences: Spans,
    budgets: Sequence[int] = BUDGETS,
) -> dict[int, float]:
    """For each budget, the share of evidence sentences that lie at least half inside the units that fit.

    Parameters
    ----------
    units : Spans
        Sentences, chunks or windows; the evidence sentences are the same for all of them.
    scores, tokens : (units,)
        See `tokens_at`. Count the tokens of all settings with one tokenizer.
    sentences : Spans
        The evidence sentences, from `spscanner_rag.results.coverage.evidence_sentences`.
    budgets : sequence of int
        Tokens, each at least 1.

    Raises
    ------
    ValueError
        If there is no evidence sentence; see also `units_within` and `evidence_ranks`.
    """
    check_evidence(sentences)
    recalls = {}
    for budget in budgets:
        kept = units_within(scores, tokens, budget)
        bought = Spans(units.starts[kept], units.ends[kept])
        recalls[budget] = float((evidence_ranks(bought, scores[kept], sentences) < NEVER).mean())
    return recalls


def _order(scores: NDArray[np.floating], tokens: NDArray[np.integer]) -> NDArray[np.int64]:
    if len(tokens) and tokens.min() < 0:
        raise ValueError(f"got a unit of {int(tokens.min())} tokens; expected at least 0")
    return best_first(scores, len(tokens))
