"""The base class of the baselines, and helpers that they share."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.baselines.units import UnitKind, segmenter_of
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.scorers import Cancelled, Request, check_query, never, stop_if
from spscanner_rag.text.units import Segmenter, Unit


class Baseline(ABC):
    """Segments a text into units and scores each for a query. A `Scorer`, like `Scanner`.

    Parameters
    ----------
    unit : str or Segmenter, default "sentence"
        What is scored and returned: "sentence" (as by the scanner), "chunk" (300 words), "passage" (a
        paragraph), "document" (the whole text), or a segmenter.

    Raises
    ------
    ValueError
        For an unknown unit.
    """

    name: str
    """Its name in tables, such as "bm25"."""

    keeps_texts = False
    """Whether it keeps what it made of a text, so that one more question on it takes less time."""

    def __init__(self, unit: UnitKind | Segmenter = "sentence") -> None:
        self.unit = unit
        self._lock = threading.Lock()  # for subclasses with parts that are not thread-safe

    @abstractmethod
    def raw_scores(self, query: str, text: str, units: Sequence[Unit]) -> NDArray[np.float32]:
        """The method's own score of each unit, higher is better: (units,)."""

    def logits(self, raw: NDArray[np.float32]) -> NDArray[np.float32]:
        """Finite logits of raw scores, in the same order: (units,). Users see their sigmoids.

        By default the raw scores, for methods whose own scores are logits already.
        """
        return raw

    def score_units(self, query: str, text: str, units: Sequence[Unit]) -> NDArray[np.float32]:
        """One logit for each unit: (units,). The spans of the units are offsets in ``text``.

        Raises
        ------
        ValueError
            If the query is empty.
        """
        check_query(query)
        if not units:
            return np.empty(0, np.float32)
        return self.logits(self.raw_scores(query, text, units))

    def segment(self, text: str) -> list[Unit]:
        """Segment a text into the units to score."""
        return self._segmenter.segment(text)

    @cached_property
    def _segmenter(self) -> Segmenter:
        return segmenter_of(self.unit)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, unit={self.unit!r})"


class CollectionBaseline(Baseline):
    """A baseline whose scores depend on all texts that a query is asked of; by default each is asked alone."""

    uses_collection = True

    @abstractmethod
    def raw_scores_among(
        self, requests: Sequence[Request], cancelled: Cancelled, collection: CollectionIndex
    ) -> list[NDArray[np.float32]]:
        """The method's own scores of the units of some texts of a collection: (units,) each."""

    def score_units_many(
        self,
        requests: Sequence[Request],
        *,
        cancelled: Cancelled = never,
        collection: CollectionIndex | None = None,
    ) -> list[NDArray[np.float32]]:
        """Logits of the units of several texts of ``collection``, (units,) each; errors as for `score_units`."""
        requests = checked_requests(requests)
        if collection is not None:
            raw = self.raw_scores_among(requests, cancelled, collection)
            return [self.logits(values) if len(values) else values for values in raw]
        scored = []
        for query, text, units in requests:
            stop_if(cancelled, "between two texts")
            scored.append(self.score_units(query, text, units))
        return scored


def checked_requests(requests: Iterable[Request]) -> list[Request]:
    """The requests, after a check of every query; ``ValueError`` if one is empty."""
    asked = list(requests)
    for query, _, _ in asked:
        check_query(query)
    return asked


def log_odds(share: NDArray[np.floating]) -> NDArray[np.float32]:
    """log(p / (1 - p)) of each share p, which is first clipped to [1e-7, 1 - 1e-7]."""
    clipped = np.clip(share.astype(np.float64), 1e-7, 1 - 1e-7)
    return (np.log(clipped) - np.log1p(-clipped)).astype(np.float32)


def optional(package: str, owner: str) -> Any:  # noqa: ANN401 - a module of the extra "baselines"
    """Import an optional package; the ``ImportError`` says what needs it and how to install it."""
    try:
        return import_module(package)
    except ImportError as error:
        name = package.replace("_", "-")
        raise ImportError(f'{owner} needs {name}: pip install "spscanner-rag[baselines]"') from error


def check_whole(least: int = 1, **numbers: object) -> None:
    """Raise ``ValueError`` for the first named argument that is not a whole number of at least ``least``."""
    for name, number in numbers.items():
        if type(number) is not int or number < least:
            raise ValueError(f"{name} is {number!r}; expected a whole number of at least {least}")
