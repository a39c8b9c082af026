"""Choose sentences that are relevant and do not repeat each other: maximal marginal relevance."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lexical.words import index_words


def diverse(
    texts: Sequence[str],
    scores: NDArray[np.float64],
    candidates: NDArray[np.int64],
    most: int,
    diversity: float,
) -> NDArray[np.int64]:
    """Pick texts by maximal marginal relevance (Carbonell and Goldstein, 1998): (picks,), in the order of picking.

    Each of ``candidates``, best first, has diversity * score - (1 - diversity) * its largest likeness to a pick:
    the cosine of their words, each stem once and weighted by its rarity, as in BM25. Time: picks times words.
    """
    words, n = index_words(texts), len(texts)
    stem_of = np.zeros(len(words.vocabulary), np.int64)
    for stem, numbers in enumerate(words.of_stem.values()):
        stem_of[np.asarray(numbers, np.int64)] = stem
    own = words.postings
    of_posting = np.repeat(stem_of[own.words], np.diff(own.stops))
    pairs = np.unique(of_posting * max(n, 1) + own.units)  # each stem of each text once, sorted by stem
    stems, units = pairs // max(n, 1), pairs % max(n, 1)
    frequency = np.bincount(stems, minlength=len(words.of_stem))
    weights = np.log1p((n - frequency + 0.5) / (frequency + 0.5))[stems] ** 2  # (pairs,)
    lengths = np.sqrt(np.maximum(np.bincount(units, weights, minlength=n), 1e-12))  # (texts,)
    values = diversity * scores[candidates]
    repeated = np.zeros(len(candidates))
    picks: list[int] = []
    while len(picks) < min(most, len(candidates)):
        place = int(np.argmax(values - (1 - diversity) * repeated))
        pick = int(candidates[place])
        picks.append(pick)
        values[place] = -np.inf
        shared = np.zeros(len(frequency), bool)
        shared[stems[units == pick]] = True
        products = np.bincount(units, weights * shared[stems], minlength=n)
        repeated = np.maximum(repeated, (products / (lengths * lengths[pick]))[candidates])
    return np.array(picks, np.int64)
