"""Texts of a collection beside one another, by the meaning of their best sentences.

A document about what is asked has several sentences that are near the question; one
about something else has at most one that happens to be. Words don't tell them apart
where all documents are about one topic.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.scan.query_on_text import QueryOnText

BEST_SENTENCES: Final = 5
"""How many of a text's sentences count for the text."""

FAR: Final = 3.0
"""How far the likeliest sentence of a text may be behind that of the likeliest text. On
300 questions about ten documents each, that with the answer was never farther."""


def beside_one_another(on_texts: Sequence[QueryOnText]) -> list[QueryOnText]:
    """Return a question on texts, with what each is beside the others.

    A text alone stays as it is.

    Parameters
    ----------
    on_texts : sequence of QueryOnText
        One question on each text, with cosines of one encoder.
    """
    cosines_by_text = [_known(on_text.cosines) for on_text in on_texts]
    ranked: list[QueryOnText] = []
    for on_text, behind in zip(on_texts, behind_best(cosines_by_text), strict=True):
        ranked.append(replace(on_text, behind=behind))
    known_numbers: list[int] = []
    known_likelihoods: list[NDArray[np.float32]] = []
    for number, on_text in enumerate(ranked):
        likelihoods = on_text.likelihoods
        if likelihoods is not None:  # a short text has none
            known_numbers.append(number)
            known_likelihoods.append(likelihoods)
    are_far_behind = far_behind(known_likelihoods)
    for number, is_far_behind in zip(known_numbers, are_far_behind, strict=True):
        ranked[number] = replace(ranked[number], is_far_behind=is_far_behind)
    return ranked


def _known(cosines: NDArray[np.float32] | None) -> NDArray[np.float32]:
    assert cosines is not None, "what matches by meaning has cosines"
    return cosines


def behind_best(cosines_by_text: Sequence[NDArray[np.float32]]) -> list[float]:
    """Return how far each text is behind the best one, as numbers of at most 0.

    A text is as near the question as its `BEST_SENTENCES` nearest sentences are, in the
    mean. One of fewer sentences is as near as all of them.

    Parameters
    ----------
    cosines_by_text : sequence of array (sentences,)
        Cosines of a question with the sentences of each text.

    Examples
    --------
    >>> import numpy as np
    >>> from spscanner_rag.scan.texts_together import behind_best
    >>> near, far = np.float32([0.5, 0.25, 0.75]), np.float32([0.25])
    >>> behind_best([near, far])
    [0.0, -0.25]
    """
    means: list[float] = []
    for cosines in cosines_by_text:
        best_cosines = np.sort(cosines)[-BEST_SENTENCES:]
        means.append(float(best_cosines.mean()) if len(best_cosines) else -1.0)
    best = max(means, default=0.0)
    return [mean - best for mean in means]


def far_behind(likelihoods_by_text: Sequence[NDArray[np.float32]]) -> list[bool]:
    """Return which texts have no sentence within `FAR` of the likeliest one.

    Parameters
    ----------
    likelihoods_by_text : sequence of array (sentences,)
        Logits of the sentences of each text, before anything is read.

    Examples
    --------
    >>> import numpy as np
    >>> from spscanner_rag.scan.texts_together import far_behind
    >>> far_behind([np.float32([-1, 2]), np.float32([-1]), np.float32([-2])])
    [False, False, True]
    """
    best_by_text = []
    for likelihoods in likelihoods_by_text:
        best_by_text.append(float(likelihoods.max(initial=-np.inf)))
    lowest = max(best_by_text, default=0.0) - FAR
    return [best < lowest for best in best_by_text]
