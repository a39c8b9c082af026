"""The base class of baselines that compare vectors of queries and of units."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Generic, TypeVar

import numpy as np

from spscanner_rag.baselines.baseline import Baseline, Scores, log_odds
from spscanner_rag.baselines.text_cache import TextCache
from spscanner_rag.baselines.unit_kinds import UnitKind
from spscanner_rag.scorers import Cancelled, Request, never, stop_if
from spscanner_rag.text.units import Segmenter, Unit

T = TypeVar("T")
"""The vectors of a text's units."""


class Embedding(Baseline, Generic[T]):
    """Compares the vector of a query with vectors of a text's units, which are kept."""

    keeps_texts = True

    def __init__(self, unit: UnitKind | Segmenter, keep_texts: int) -> None:
        super().__init__(unit)
        self._vectors: TextCache[T] = TextCache(keep_texts)

    def raw_scores_many(
        self, requests: Sequence[Request], cancelled: Cancelled = never
    ) -> Iterator[Scores]:
        """Similarities, (units,) each.

        For NaN or a wrong vector width, a ``ValueError`` that quotes the text.

        A query is embedded once per call, for all its texts, and again in the next
        call, so that timing counts it.
        """
        questions: dict[str, Scores] = {}
        for query, text, units in requests:
            stop_if(cancelled, "between two texts")
            if not units:
                yield np.empty(0, np.float32)
                continue
            embed = partial(self._vectors_of_units, text, units)
            vectors = self._vectors.get(text, units, embed)
            if query not in questions:
                questions[query] = self._vector_of_query(query, vectors)
            yield self._similarities(questions[query], vectors)

    @abstractmethod
    def _vectors_of_units(self, text: str, units: Sequence[Unit]) -> T: ...

    @abstractmethod
    def _vector_of_query(self, query: str, vectors: T) -> Scores: ...

    @abstractmethod
    def _similarities(self, question: Scores, vectors: T) -> Scores: ...

    def logits(self, raw: Scores) -> Scores:
        """The logit of (1 + cosine) / 2."""
        return log_odds((1 + raw) / 2)
