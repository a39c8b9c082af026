"""What gives the units of a text their scores: the scanner, or a baseline in its place."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.scan.pipeline import ScanCancelled
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.units import Unit

Request = tuple[str, str, Sequence[Unit]]


@runtime_checkable
class Scorer(Protocol):
    """Anything that scores the units of a text for a query; `Scanner` is one.

    Three more methods are used if a scorer has them: ``score_units_many(requests, cancelled=...)`` for several
    texts at once, ``segment(text)`` to cut a text into units (else `SentenceSegmenter` does), and
    ``count_tokens(text)`` for token budgets.
    """

    def score_units(self, query: str, text: str, units: Sequence[Unit]) -> NDArray[np.float32]:
        """One logit for each unit, (units,): higher is better, and 0 stands for a score of 0.5."""
        ...


def segment(scorer: Scorer, text: str) -> list[Unit]:
    """Cut a text into the units that a scorer likes best."""
    own: Callable[[str], list[Unit]] | None = getattr(scorer, "segment", None)
    if own is None:
        return SentenceSegmenter().segment(text)
    return own(text)


def score_batch(
    scorer: Scorer, requests: Sequence[Request], cancelled: Callable[[], bool]
) -> Iterator[NDArray[np.float32]]:
    """Logits of the units of several texts.

    Raises
    ------
    ValueError
        If the scorer returns anything but one finite number for each unit.
    ScanCancelled
        If ``cancelled`` returned True.
    """
    filled = [request for request in requests if request[2]]  # a baseline need not bear a text of no units
    many: Callable[..., Sequence[NDArray[np.float32]]] | None = getattr(scorer, "score_units_many", None)
    scored: Iterator[Any]
    if many is None:
        scored = _one_by_one(scorer, filled, cancelled)
    else:
        answers = many(filled, cancelled=cancelled) if filled else []
        if len(answers) != len(filled):
            raise ValueError(
                f"{type(scorer).__name__}.score_units_many returned {len(answers)} arrays for {len(filled)} "
                "texts; expected one for each"
            )
        scored = iter(answers)
    for _, _, units in requests:
        yield _checked(scorer, next(scored), len(units)) if units else np.zeros(0, np.float32)


def _checked(scorer: Scorer, values: object, n_units: int) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):  # beyond float32 is infinite, and refused
        logits = np.asarray(values, np.float32)
    if logits.shape != (n_units,) or not np.isfinite(logits).all():
        wrong = int((~np.isfinite(logits)).sum())
        raise ValueError(
            f"{type(scorer).__name__}.score_units returned shape {logits.shape} with {wrong} values that are "
            f"not finite, for {n_units} units; expected one finite number for each"
        )
    return logits


def _one_by_one(
    scorer: Scorer, requests: Sequence[Request], cancelled: Callable[[], bool]
) -> Iterator[NDArray[np.float32]]:
    for query, text, units in requests:
        if cancelled():
            raise ScanCancelled("cancelled between two texts")
        yield scorer.score_units(query, text, units)
