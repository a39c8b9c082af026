"""Rank documents by the scores of their passages."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spscanner_rag.baselines.units import DocumentSegmenter
from spscanner_rag.results.document_score import DocumentScore, best_first
from spscanner_rag.results.selection import sigmoid
from spscanner_rag.scorers import Cancelled, Scorer, check_query, never, score_batch, segment, words_together

PassageAggregation = Literal["first_p", "max_p", "avg_p", "sum_p", "long_p"]

_TEXTS_AT_ONCE = 64


def first_p(scores: ArrayLike) -> float:
    """FirstP (Dai and Callan, 2019): the score of the first passage.

    ``scores``: (passages,), in document order, not empty. Xu et al. (2024) call the score of a document's first
    512 tokens FirstP: that is `long_p` of ``MambaReranker(model, "document", document_tokens=FIRST_P_TOKENS)``.
    """
    return float(_checked(scores)[0])


def max_p(scores: ArrayLike) -> float:
    """MaxP (Dai and Callan, 2019): the score of the best passage. ``scores``: (passages,), not empty."""
    return float(_checked(scores).max())


def avg_p(scores: ArrayLike) -> float:
    """AvgP: the mean of the passages' scores. ``scores``: (passages,), not empty."""
    return float(_checked(scores).mean())


def sum_p(scores: ArrayLike) -> float:
    """SumP (Dai and Callan, 2019): the sum of the passages' scores, which should be probabilities.

    ``scores``: (passages,), not empty.
    """
    return float(_checked(scores).sum())


def long_p(scores: ArrayLike) -> float:
    """LongP: the score of the document, read as one passage. ``scores``: (1,).

    A `MambaReranker` reads all of it, or its first ``document_tokens``. The LongP of Xu et al. (2024) reads 1,536
    tokens, `LONG_P_TOKENS`.
    """
    values = _checked(scores)
    if len(values) != 1:
        raise ValueError(
            f"LongP got {len(values)} scores; expected one, of the whole document: use unit='document'"
        )
    return float(values[0])


AGGREGATIONS: Final[Mapping[PassageAggregation, Callable[[ArrayLike], float]]] = MappingProxyType(
    {"first_p": first_p, "max_p": max_p, "avg_p": avg_p, "sum_p": sum_p, "long_p": long_p}
)


def rank_by_passages(
    scorer: Scorer,
    query: str,
    texts: Sequence[str],
    aggregation: PassageAggregation = "max_p",
    *,
    cancelled: Cancelled = never,
) -> list[DocumentScore]:
    """Rank documents by their passages' probabilities, the sigmoids of the scorer's logits.

    Parameters
    ----------
    scorer : Scorer
        Its units are the passages, except for "long_p", for which it scores each text as one unit.
    query : str
        The question; not empty.
    texts : sequence of str
        The documents.
    aggregation : str, default "max_p"
        One of `AGGREGATIONS`.
    cancelled : callable, optional
        Called regularly; True ends the work.

    Returns
    -------
    list of DocumentScore
        Best first; ties in the order given. A document without passages has score 0.

    Raises
    ------
    ValueError
        If the query is empty, or the aggregation is unknown.
    ScanCancelled
        If ``cancelled`` returned True.
    """
    if aggregation not in AGGREGATIONS:
        raise ValueError(f"aggregation is {aggregation!r}; expected one of {', '.join(AGGREGATIONS)}")
    check_query(query)
    whole = DocumentSegmenter()
    units = [whole.segment(text) if aggregation == "long_p" else segment(scorer, text) for text in texts]
    collection = words_together(scorer, units, cancelled) if len(texts) > 1 else None
    scores: list[float] = []
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        batch = slice(start, start + _TEXTS_AT_ONCE)
        requests = [(query, text, cut) for text, cut in zip(texts[batch], units[batch], strict=True)]
        for logits in score_batch(scorer, requests, cancelled, collection):
            scores.append(AGGREGATIONS[aggregation](sigmoid(logits)) if len(logits) else 0.0)
    return best_first(scores)


def _checked(scores: ArrayLike) -> NDArray[np.float64]:
    values = np.asarray(scores, np.float64)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise ValueError(
            f"got scores of shape {values.shape}; expected one finite number for each passage, at least one"
        )
    return values
