"""Lead-ins and the items of their lists, which answer together.

"You may get help with:" and "- childcare" lack the words of each other, so that a
question finds one of them without the other.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.encoder.meaning_weights import MeaningWeights
from spscanner_rag.text.sentence_marks import MARKS

LONGEST_LIST: Final = 8
"""Maximum number of items that a lead-in is read with."""

_INTRODUCES = MARKS.index("introduces")
_IS_ITEM = MARKS.index("is_item")
_ENDS = MARKS.index("ends")


def with_lead_ins(
    logits: NDArray[np.float32], marks: NDArray[np.float32], weights: MeaningWeights
) -> NDArray[np.float32]:
    """Return logits in which lists stand beside their lead-ins.

    An item gets a share of what its lead-in is ahead, and a lead-in a share of what its
    best item is ahead. Nothing gets less than it had.

    Parameters
    ----------
    logits : array (sentences,)
        Of all sentences of a text, in their order.
    marks : array (sentences, marks)
        From `text.sentence_marks.sentence_marks`.
    weights : MeaningWeights
        With ``items`` and ``lead_in``.

    Examples
    --------
    >>> import numpy as np
    >>> from spscanner_rag.encoder.meaning_weights import MeaningWeights
    >>> from spscanner_rag.scan.lead_ins import with_lead_ins
    >>> from spscanner_rag.text.sentence_marks import sentence_marks
    >>> marks = sentence_marks(["You get help with:", "- childcare", "- rent", "Ask."])
    >>> weights = MeaningWeights(items=0.5, lead_in=0.5)
    >>> with_lead_ins(np.float32([2, -2, 3, -1]), marks, weights).tolist()
    [2.5, 0.0, 3.0, -1.0]
    """
    changed = np.array(logits, np.float32)
    for lead_in, stop in _lists(marks):
        items = logits[lead_in + 1 : stop]
        behind = np.maximum(logits[lead_in] - items, 0)
        changed[lead_in + 1 : stop] += weights.items * behind
        ahead = max(float(items.max() - logits[lead_in]), 0.0)
        changed[lead_in] += weights.lead_in * ahead
    return changed


def _lists(marks: NDArray[np.float32]) -> Iterator[tuple[int, int]]:
    """Yield the number of each lead-in, and where its list stops.

    An item is marked as one, or is a line that no full stop ends.
    """
    introduces = marks[:, _INTRODUCES] > 0
    may_be_item = (marks[:, _IS_ITEM] > 0) | ((marks[:, _ENDS] == 0) & ~introduces)
    stop = 0
    for lead_in in np.flatnonzero(introduces).tolist():
        if lead_in < stop:
            continue
        stop = lead_in + 1
        last = min(lead_in + 1 + LONGEST_LIST, len(marks))
        while stop < last and may_be_item[stop]:
            stop += 1
        if stop > lead_in + 1:
            yield lead_in, stop
