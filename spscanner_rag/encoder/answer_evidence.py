"""How much speaks for it that a text answers a question at all."""

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

NOTHING_READ: Final = -6.0
"""The cross-reader's minimum for a text, and its value if nothing was worth reading."""

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
