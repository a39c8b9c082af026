"""Sentences that echo a question: another question, or a heading, in the text.

They match a question better than its answer does, which stands below them.
"""

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.encoder.meaning_weights import MeaningWeights
from spscanner_rag.text.sentence_marks import MARKS

_ASKS = MARKS.index("asks")
_IS_HEADING = MARKS.index("is_heading")


def after_echoes(
    logits: NDArray[np.float32], marks: NDArray[np.float32], weights: MeaningWeights
) -> NDArray[np.float32]:
    """Return logits in which answers stand before the questions above them.

    A sentence that asks, or a heading, hands a share of its lead to the sentence below
    it. Then its own logit gets a weight of its kind.

    Parameters
    ----------
    logits : array (sentences,)
        Of all sentences of a text, in their order.
    marks : array (sentences, marks)
        From `text.sentence_marks.sentence_marks`.
    weights : MeaningWeights
        With ``asks``, ``heading`` and ``handed``.

    Examples
    --------
    >>> import numpy as np
    >>> from spscanner_rag.encoder.meaning_weights import MeaningWeights
    >>> from spscanner_rag.scan.echoes import after_echoes
    >>> from spscanner_rag.text.sentence_marks import sentence_marks
    >>> marks = sentence_marks(["Who signs?", "Carla does.", "It rained."])
    >>> weights = MeaningWeights(asks=-2.0, handed=0.5)
    >>> after_echoes(np.float32([3, 0, -4]), marks, weights).tolist()
    [1.0, 1.5, -4.0]
    """
    asks = marks[:, _ASKS] > 0
    is_heading = marks[:, _IS_HEADING] > 0
    changed = logits + weights.asks * asks + weights.heading * (is_heading & ~asks)
    is_echo = asks | (is_heading & bool(weights.heading))
    for echo in np.flatnonzero(is_echo[:-1] & ~is_echo[1:]).tolist():
        lead = max(float(logits[echo] - logits[echo + 1]), 0.0)
        changed[echo + 1] += weights.handed * lead
    return np.asarray(changed, np.float32)
