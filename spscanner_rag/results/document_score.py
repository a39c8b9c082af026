"""One score for a document from the logits of its sentences, so that documents can be ranked too."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.results.selection import sigmoid

Aggregation = Literal["max", "mean", "mean_top", "sum", "logsumexp", "first", "long"]


class DocumentScore(NamedTuple):
    """A document's number in the order given, and its score."""

    number: int
    score: float


def document_score(logits: NDArray[np.floating], aggregation: Aggregation = "max", *, top: int = 3) -> float:
    """Score a document by its sentences.

    Parameters
    ----------
    logits : (sentences,)
    aggregation : str, default "max"
        "max": the best logit (MaxP of Dai and Callan, 2019). "mean": the mean logit. "first": that of the first
        sentence (FirstP). "long": that of the document, which is read as one unit (LongP). "mean_top": the mean
        of the ``top`` best logits (of all, where there are fewer).
        "sum": the sum of the scores, ``sigmoid(logit)``: how many sentences are expected to be relevant. (A sum of
        logits, most of which are negative, would put the longest document last.) "logsumexp":
        ``log(sum(exp(logits)))``, between the best logit and a count.
    top : int, default 3
        How many logits "mean_top" takes.

    Returns
    -------
    float
        Comparable between documents scored for the same question in the same way. A document without sentences
        has the lowest possible score, ``-inf`` (0 for "sum").

    Raises
    ------
    ValueError
        For another aggregation, a ``top`` below 1, or a logit that is not finite.
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


def rank_documents(
    logits: Sequence[NDArray[np.floating]], aggregation: Aggregation = "max", *, top: int = 3
) -> list[DocumentScore]:
    """Rank documents by `document_score`, from the best to the worst; among equal scores the earlier first.

    ``logits`` holds one array of (sentences,) for each document, all for one question; the other arguments and
    the errors are those of `document_score`.
    """
    return best_first([document_score(values, aggregation, top=top) for values in logits])


def best_first(scores: Sequence[float]) -> list[DocumentScore]:
    """Documents by their scores, the highest first; among equal scores the earlier document first."""
    ranked = [DocumentScore(number, score) for number, score in enumerate(scores)]
    return sorted(ranked, key=lambda document: -document.score)
