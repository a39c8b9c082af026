"""The base class of the baselines: units of a kind, raw scores, and logits of these."""

import threading
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.baselines.unit_kinds import UnitKind, segmenter_of
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.scorers import (
    Cancelled,
    Request,
    Scorer,
    UnitScores,
    check_query,
    never,
    unit_name_of,
)
from spscanner_rag.text.block_segmentation import segment_blocks
from spscanner_rag.text.blocks import Block
from spscanner_rag.text.units import Segmenter, Unit

Scores = NDArray[np.float32]


class Baseline(Scorer):
    """Segments a text into units and scores each unit for a query.

    Parameters
    ----------
    unit : str or Segmenter, default "sentence"
        What is scored and returned: "sentence" (cut as by the scanner), "chunk" (300
        words), "passage" (a paragraph), "document" (the whole text), or a segmenter;
        ``ValueError`` for another name.
    """

    def __init__(self, unit: UnitKind | Segmenter = "sentence") -> None:
        self.unit = unit
        # for parts of subclasses that are not thread-safe
        self._lock = threading.Lock()

    def raw_scores(self, query: str, text: str, units: Sequence[Unit]) -> Scores:
        """The method's own score of each unit, where higher is better: (units,)."""
        return next(iter(self.raw_scores_many([(query, text, units)])))

    @abstractmethod
    def raw_scores_many(
        self, requests: Sequence[Request], cancelled: Cancelled = never
    ) -> Iterable[Scores]:
        """`raw_scores` of several texts, (units,) each.

        Compute once what does not depend on the text. A scorer that `uses_collection`
        also takes ``among``, a `CollectionIndex` or None.
        """

    def logits(self, raw: Scores) -> Scores:
        """Finite logits of raw scores, in the same order: (units,).

        Users see their sigmoids.

        The default returns the raw scores, for methods whose own scores are already
        logits.
        """
        return raw

    def score_units(self, query: str, text: str, units: Sequence[Unit]) -> Scores:
        """One logit for each unit, whose span has offsets in ``text``: (units,).

        Raises as `score_units_many`.
        """
        return self.score_units_many([(query, text, units)])[0].logits

    def score_units_many(
        self,
        requests: Sequence[Request],
        *,
        collection: CollectionIndex | None = None,
        cancelled: Cancelled = never,
    ) -> list[UnitScores]:
        """Logits of the units of several texts, in order.

        ``collection`` is used if scores need it.

        ``ValueError`` for an empty query, before any work; ``ScanCancelled`` if
        ``cancelled`` returned True.
        """
        for query, _, _ in requests:
            check_query(query)
        scores = []
        for raw in self.raw_scores_among(requests, cancelled, collection):
            scores.append(UnitScores(self.logits(raw) if len(raw) else raw))
        return scores

    def raw_scores_among(
        self,
        requests: Sequence[Request],
        cancelled: Cancelled,
        collection: CollectionIndex | None,
    ) -> Iterable[Scores]:
        """`raw_scores_many` of texts of a collection: (units,) each.

        Without a collection, each text is its own.
        """
        options: dict[str, Any] = {}
        if self.uses_collection:
            options["among"] = collection
        return self.raw_scores_many(requests, cancelled, **options)

    def units_of(self, text: str, blocks: Sequence[Block] = ()) -> list[Unit]:
        """Cut a text into the units to score.

        ``blocks`` matter for sentences alone.
        """
        segmenter = segmenter_of(self.unit)
        if blocks and self.unit == "sentence":
            return segment_blocks(text, blocks, segmenter.segment)
        return segmenter.segment(text)

    @property
    def unit_name(self) -> str | None:
        """The name of ``unit``, or of the segmenter that it is."""
        return unit_name_of(self.unit)

    def __getstate__(self) -> dict[str, object]:
        state = dict(self.__dict__)
        del state["_lock"]
        return state

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, unit={self.unit!r})"


def log_odds(shares: NDArray[np.floating]) -> Scores:
    """log(p / (1 - p)) of each share p, which is first clipped to [1e-7, 1 - 1e-7].

    Examples
    --------
    >>> import numpy as np
    >>> from spscanner_rag.baselines.baseline import log_odds
    >>> log_odds(np.array([0.5])).tolist()
    [0.0]
    """
    clipped = np.clip(shares.astype(np.float64), 1e-7, 1 - 1e-7)
    return (np.log(clipped) - np.log1p(-clipped)).astype(np.float32)
