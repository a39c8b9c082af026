"""Where in a document the scores are high, reduced to a fixed number of parts that a strip can show."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def score_profile(
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    scores: NDArray[np.floating[Any]],
    characters: int,
    parts: int,
) -> NDArray[np.float64]:
    """The best score in each of ``parts`` equal stretches of a document of so many ``characters``.

    Parameters
    ----------
    starts, ends, scores : (sentences,)
        Spans in characters, and scores of 0 or more.
    characters, parts : int
        At least 1.

    Returns
    -------
    (parts,)
        0 where no sentence stands.
    """
    profile = np.zeros(parts)
    first = starts * parts // characters
    last = np.minimum((ends - 1) * parts // characters, parts - 1)
    spread = last - first + 1  # in how many parts each sentence stands: (sentences,)
    behind = np.arange(spread.sum()) - np.repeat(np.cumsum(spread) - spread, spread)
    np.maximum.at(profile, np.repeat(first, spread) + behind, np.repeat(scores, spread))
    return profile
