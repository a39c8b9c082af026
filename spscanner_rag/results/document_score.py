"""One score for a document from the logits of its sentences, so that documents can be ranked too."""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.results.selection import sigmoid

Aggregation = Literal["max", "mean", "mean_top", "sum", "logsumexp", "first", "long"]


def document_score(logits: NDArray[np.floating], aggregation: Aggregation = "max", *, top: int = 3) -> float:
    """Score a document by its sentences' logits, (sentences,); comparable for one question scored in the same way.

    ``aggregation`` is "max": the best logit (MaxP of Dai and Callan, 2019); "mean"; "first": that of the first
    sentence (FirstP); "long": that of the document, which is read as one unit (LongP); "mean_top": the mean of the
    ``top`` best logits; "sum": of the scores, ``sigmoid(logit)``, the expected number of relevant sentences (a sum
    of logits, most of them negative, would put the longest document last); "logsumexp": between the best logit and
    a count. Without sentences it is ``-inf`` (0 for "sum"). Raises ``ValueError`` for a logit that is not finite.
    """
    check_aggregation(aggregation)
    if type(top) is not int or top < 1:
        raise ValueError(f"top is {top!r}; expected a whole number of at least 1")
    logits = np.asarray(logits, np.float64)
    if logits.ndim != 1 or not np.isfinite(logits).all():
        raise ValueError(f"got logits of shape {logits.shape}; expected one finite number for each sentence")
    if aggregation == "sum":
        return float(sigmoid(logits).sum())
    if not len(logits):
        return -np.inf
    if aggregation == "mean_top":
        return float(np.sort(logits)[-top:].mean())
    if aggregation == "long" and len(logits) > 1:
        raise ValueError(f'aggregation "long" got {len(logits)} logits; expected one: use unit="document"')
    if aggregation in ("first", "long"):
        return float(logits[0])
    if aggregation == "mean":
        return float(logits.mean())
    best = logits.max()
    if aggregation == "logsumexp":
        best += np.log(np.exp(logits - best).sum())
    return float(best)


def check_aggregation(aggregation: str) -> None:
    """Raise ``ValueError`` for an unknown aggregation."""
    if aggregation not in get_args(Aggregation):
        raise ValueError(
            f"aggregation is {aggregation!r}; expected one of {', '.join(get_args(Aggregation))}"
        )


def best_first(scores: Sequence[float]) -> list[tuple[int, float]]:
    """Numbers and scores of documents, the highest first; among equal scores the earlier document first."""
    return sorted(enumerate(scores), key=lambda document: -document[1])
