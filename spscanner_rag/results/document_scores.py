"""One score for a whole document, from the logits of its sentences."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.results.ranking import sigmoid

Aggregation = Literal["max", "mean", "mean_top", "sum", "logsumexp", "first", "long"]


def document_score(
    logits: NDArray[np.floating], aggregation: Aggregation = "max", *, top: int = 3
) -> float:
    """Score a document by its sentences' logits, (sentences,).

    Scores are comparable for one question scored in the same way.

    Parameters
    ----------
    logits : array of float, shape (sentences,)
        The logits of the sentences.
    aggregation : str
        "max": the best logit (MaxP of Dai and Callan, 2019); "mean"; "first": that of
        the first sentence (FirstP); "long": that of the document, read as one unit
        (LongP); "mean_top": the mean of the ``top`` best logits; "sum": the sum of the
        scores, ``sigmoid(logit)``, the expected number of relevant sentences (most
        logits are negative, so their sum would put the longest document last); or
        "logsumexp": between "max" and a count.
    top : int, default 3
        For "mean_top".

    Returns
    -------
    float
        The score. Without sentences it is ``-inf`` (0 for "sum").

    Raises
    ------
    ValueError
        For a logit that is not finite, or another argument that cannot be.

    Examples
    --------
    >>> logits = np.array([-2.0, 3.0, 0.0])
    >>> document_score(logits), document_score(logits, "mean_top", top=2)
    (3.0, 1.5)
    """
    check_aggregation(aggregation)
    if type(top) is not int or top < 1:
        raise ValueError(f"top is {top!r}; expected a whole number of at least 1")
    logits = np.asarray(logits, np.float64)
    if logits.ndim != 1 or not np.isfinite(logits).all():
        raise ValueError(
            f"got logits of shape {logits.shape}; expected one finite number for each"
            " sentence"
        )
    if aggregation == "sum":
        return float(sigmoid(logits).sum())
    if not len(logits):
        return -np.inf
    if aggregation == "mean_top":
        return float(np.sort(logits)[-top:].mean())
    if aggregation == "long" and len(logits) > 1:
        raise ValueError(
            f'aggregation "long" got {len(logits)} logits; expected one: use'
            ' unit="document"'
        )
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
            f"aggregation is {aggregation!r}; expected one of"
            f" {', '.join(get_args(Aggregation))}"
        )
