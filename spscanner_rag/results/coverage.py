"""The evidence sentences that retrieved units cover.

The units may be sentences, chunks or windows. An evidence sentence is found when at
least half of its characters lie inside the retrieved units taken together. If the units
are the sentences themselves, this gives the usual recall.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.results.ranking import rank
from spscanner_rag.text.units import Unit

NEVER = np.iinfo(np.int64).max
"""The rank of a sentence that is not found, beyond every cut-off."""


class Spans(NamedTuple):
    """Character spans in one text."""

    starts: NDArray[np.int64]  # (spans,)
    ends: NDArray[np.int64]  # (spans,)

    @classmethod
    def of(cls, units: Sequence[Unit]) -> "Spans":
        """The spans of units."""
        starts = np.array([unit.start for unit in units], np.int64)
        ends = np.array([unit.end for unit in units], np.int64)
        return cls(starts, ends)


def evidence_sentences(sentences: Spans, evidence: Sequence[tuple[int, int]]) -> Spans:
    """The sentences that overlap an evidence span."""
    relevant = relevant_units(sentences.starts, sentences.ends, evidence)
    return Spans(sentences.starts[relevant], sentences.ends[relevant])


def evidence_ranks(
    units: Spans, scores: NDArray[np.floating], sentences: Spans
) -> NDArray[np.int64]:
    """Number of best units that hold at least half of each sentence, from 1.

    The result is (sentences,). Units may overlap; among equal ``scores``, (units,), the
    earlier comes first. A sentence that all units together do not cover by half has
    `NEVER`.

    Examples
    --------
    >>> units = Spans(np.array([0, 10, 20]), np.array([10, 20, 30]))
    >>> sentences = Spans(np.array([12, 40]), np.array([20, 50]))
    >>> evidence_ranks(units, np.array([0.3, 0.2, 0.9]), sentences) == [3, NEVER]
    array([ True,  True])
    """
    order = rank(np.asarray(scores, np.float64))
    starts = units.starts[order]
    ends = units.ends[order]
    ranks = np.full(len(sentences.starts), NEVER)
    spans = zip(sentences.starts, sentences.ends, strict=True)
    for number, (start, end) in enumerate(spans):
        covered = np.zeros(end - start, bool)
        for place in np.flatnonzero((starts < end) & (ends > start)):
            covered[max(starts[place] - start, 0) : ends[place] - start] = True
            if 2 * covered.sum() >= len(covered):
                ranks[number] = place + 1
                break
    return ranks


def relevant_units(
    starts: NDArray[np.integer],
    ends: NDArray[np.integer],
    evidence: Sequence[tuple[int, int]],
) -> NDArray[np.bool_]:
    """True for each unit that overlaps an evidence span: (units,)."""
    relevant = np.zeros(len(starts), bool)
    for start, end in evidence:
        relevant |= (starts < end) & (ends > start)
    return relevant
