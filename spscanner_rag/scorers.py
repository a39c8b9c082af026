"""The seam: what scores the units of a text, how far it is, and how it is stopped.

The scanner is a `Scorer`, and so is every baseline. A third party needs numpy alone to write another one.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.units import Unit

Request = tuple[str, str, Sequence[Unit]]
"""A query, a text and the units of the text that are scored."""

Progress = Callable[[int, int], None]
"""Called with (tokens done, tokens in all that are known so far)."""

Cancelled = Callable[[], bool]
"""Asked now and then; True ends the work with `ScanCancelled`."""


class ScanCancelled(Exception):  # noqa: N818 - nothing went wrong
    """The caller asked to stop; nothing was returned."""


def never() -> bool:
    """Answer for work that nobody cancels."""
    return False


def stop_if(cancelled: Cancelled, where: str = "between two forward passes") -> None:
    """Raise `ScanCancelled` if the caller wants to stop."""
    if cancelled():
        raise ScanCancelled(f"cancelled {where}")


def check_query(query: object, name: str = "query") -> str:
    """Return a query that can be asked.

    Raises
    ------
    TypeError
        If it is not a string.
    ValueError
        If it is empty or white space; the message calls it ``name``.
    """
    if not isinstance(query, str):
        raise TypeError(f"{name}: got {type(query).__name__}; expected a string (decode bytes first)")
    if not query.strip():
        raise ValueError(f"{name}: got {query!r:.60}; expected a question or key words")
    return str(query)


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
    scorer: Scorer, requests: Sequence[Request], cancelled: Cancelled = never
) -> Iterator[NDArray[np.float32]]:
    """Logits of the units of several texts.

    Raises
    ------
    ValueError
        If the scorer returns anything but one finite number for each unit.
    ScanCancelled
        If ``cancelled`` returned True.
    """
    filled = [request for request in requests if request[2]]  # a scorer may refuse a text without units
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
    scorer: Scorer, requests: Sequence[Request], cancelled: Cancelled
) -> Iterator[NDArray[np.float32]]:
    for query, text, units in requests:
        stop_if(cancelled, "between two texts")
        yield scorer.score_units(query, text, units)
