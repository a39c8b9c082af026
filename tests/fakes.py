"""Helpers of all tests: a scorer with scripted answers, and ways to look at texts."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.results import ScanResult
from spscanner_rag.scorers import Scorer, UnitScores
from spscanner_rag.text.units import Unit


class ScoredBy(Scorer):
    """Takes its logits from a function of query, text and units."""

    def __init__(
        self, logits: Callable[[str, str, Sequence[Unit]], Iterable[float]]
    ) -> None:
        self.logits = logits

    def score_units(
        self, query: str, text: str, units: Sequence[Unit]
    ) -> NDArray[np.float32]:
        return np.array(list(self.logits(query, text, units)), np.float32)


EQUAL = ScoredBy(lambda query, text, units: [1.0] * len(units))
"""Gives all units the same score."""


def result_of(
    sentences: Sequence[str],
    logits: Sequence[float],
    between: str = " ",
    *,
    query: str = "q",
    **fields: Any,
) -> ScanResult:
    """A result whose text consists of these sentences."""
    ends = np.cumsum([len(one) + len(between) for one in sentences]) - len(between)
    starts = ends - [len(one) for one in sentences]
    return ScanResult(
        query,
        between.join(sentences),
        starts,
        ends,
        np.array(logits, np.float32),
        **fields,
    )


def logits_of(scores: Iterable[UnitScores]) -> list[NDArray[np.float32]]:
    """The logits of several texts."""
    return [scores_of_text.logits for scores_of_text in scores]


def words(text: str) -> int:
    """Counts words as tokens."""
    return len(text.split())


def squeezed(text: str) -> str:
    """A text without white space."""
    return "".join(text.split())
