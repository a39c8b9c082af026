"""How much speaks for it that a text answers a question at all."""

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

NOTHING_READ: Final = -6.0
"""The cross-reader's minimum for a text, and its value if nothing was worth reading."""

LEAST_LOGIT: Final = -10.0
"""The best logit of no sentence."""

BEST_COSINE: Final = 3.0
"""Weight of the best cosine; of 3, 5, 8 and 10, 3 recognized near misses of unseen
kinds best."""


def answer_evidence(
    cosines: NDArray[np.float32], cross_logits: NDArray[np.float32] | None
) -> float:
    """Return a score of how probably one of a text's sentences answers.

    The cross-reader's logits enter by the logarithm of their summed exponentials, which
    its training keeps below 0 if no sentence answers. The scanner's logits are left
    out: near misses share more words with a question.

    Parameters
    ----------
    cosines : array (sentences,)
        Cosines of the question with the sentences.
    cross_logits : array (sentences,) or None
        Logits of the cross-reader, minus infinity where it did not read.
    """
    if not len(cosines):
        return -math.inf
    evidence = BEST_COSINE * float(cosines.max())
    if cross_logits is not None:
        summed = max(float(np.logaddexp.reduce(cross_logits)), NOTHING_READ)
        evidence -= float(np.logaddexp(0, -summed))
    return evidence


def lead_of_others(
    logits: NDArray[np.float32], said_by_others: NDArray[np.bool_]
) -> float:
    """Return how far what others say is ahead of the words that are asked for.

    It speaks against an answer: the question then takes one person for another.

    Parameters
    ----------
    logits : array (sentences,)
        Of all sentences of a text.
    said_by_others : array (sentences,)
        From `scan.who_said_it.said_by_others`.

    Examples
    --------
    >>> import numpy as np
    >>> from spscanner_rag.encoder.answer_evidence import lead_of_others
    >>> said_by_others = np.array([False, True, False])
    >>> [lead_of_others(np.float32([1, best, 0]), said_by_others) for best in (3, -1)]
    [2.0, 0.0]
    """
    best_of_others = logits[said_by_others].max(initial=LEAST_LOGIT)
    best_of_asked = logits[~said_by_others].max(initial=LEAST_LOGIT)
    return max(float(best_of_others - best_of_asked), 0.0)
