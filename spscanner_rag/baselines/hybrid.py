"""Fusion of the scores of several scorers."""

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.baselines.base import Baseline, CollectionBaseline, log_odds
from spscanner_rag.baselines.units import UnitKind
from spscanner_rag.scorers import Cancelled, Request, Scorer, score_batch, segment
from spscanner_rag.text.bm25 import standardized
from spscanner_rag.text.collection_index import CollectionIndex
from spscanner_rag.text.units import Segmenter, Unit

Fusion = Literal["scores", "ranks"]

RANK_CONSTANT = 60
"""The constant of reciprocal-rank fusion (Cormack et al., 2009)."""


class Hybrid(CollectionBaseline):
    """Fuses the scores or ranks of several scorers.

    The raw score of a unit is the weighted mean over the scorers of (s - mean) / deviation, for the scorer's own
    score s, or of 1 / (60 + rank), which is reciprocal rank fusion (Cormack et al., 2009).

    Parameters
    ----------
    scorers : sequence of Scorer
        At least two; scanners, baselines or others.
    fusion : "scores" or "ranks", default "scores"
        "scores" standardizes each scorer's scores over the units of the document; with "ranks", units of the same
        score share their mean rank.
    weights : sequence of float, optional
        One for each scorer, not negative and not all 0. Default: all the same.
    unit : str or Segmenter, optional
        See `Baseline`. Default: the units of the first scorer.

    Raises
    ------
    ValueError
        For fewer than two scorers, invalid weights or an unknown fusion.
    TypeError
        For an object that is not a `Scorer`.
    """

    def __init__(
        self,
        scorers: Sequence[Scorer],
        fusion: Fusion = "scores",
        *,
        weights: Sequence[float] | None = None,
        unit: UnitKind | Segmenter | None = None,
    ) -> None:
        super().__init__("sentence" if unit is None else unit)
        if len(scorers) < 2:
            raise ValueError(f"got {len(scorers)} scorers; expected at least two")
        for scorer in scorers:
            if not isinstance(scorer, Scorer):
                raise TypeError(f"{type(scorer).__name__} does not score; expected score_units(...)")
        if fusion not in ("scores", "ranks"):
            raise ValueError(f"fusion is {fusion!r}; expected 'scores' or 'ranks'")
        shares = np.ones(len(scorers)) if weights is None else np.asarray(weights, np.float64)
        if shares.shape != (len(scorers),) or not (shares >= 0).all() or not 0 < shares.sum() < np.inf:
            raise ValueError(
                f"weights are {weights!r}; expected one of at least 0 for each scorer, not all 0"
            )
        self.scorers, self.fusion = tuple(scorers), fusion
        self.weights: NDArray[np.float64] = shares / shares.sum()
        self._own_units = unit is not None
        names = (getattr(scorer, "name", None) for scorer in scorers)
        self.name = "hybrid:" + "+".join(
            name if isinstance(name, str) else type(scorer).__name__.lower()
            for name, scorer in zip(names, scorers, strict=True)
        )

    def segment(self, text: str) -> list[Unit]:
        """Segment a text into ``unit``, else as the first scorer does."""
        return super().segment(text) if self._own_units else segment(self.scorers[0], text)

    def raw_scores(self, query: str, text: str, units: Sequence[Unit]) -> NDArray[np.float32]:
        """The weighted mean of standardized scores, or of reciprocal ranks: (units,)."""
        return self._fused([_own_scores(scorer, query, text, units) for scorer in self.scorers])

    @property
    def keeps_texts(self) -> bool:  # type: ignore[override]
        """Whether any of the scorers keeps what it made of a text."""
        return any(getattr(scorer, "keeps_texts", False) for scorer in self.scorers)

    @property
    def uses_collection(self) -> bool:  # type: ignore[override]
        """Whether any of the scorers depends on the other texts of a collection."""
        return any(getattr(scorer, "uses_collection", False) for scorer in self.scorers)

    def raw_scores_among(
        self, requests: Sequence[Request], cancelled: Cancelled, collection: CollectionIndex
    ) -> list[NDArray[np.float32]]:
        """Scores or ranks among the units of all these texts, fused: (units,) for each text."""
        parts = []
        for scorer in self.scorers:
            scored = _own_scores_among(scorer, requests, cancelled, collection)
            parts.append(np.concatenate([np.zeros(0, np.float32), *scored]))
        return np.split(self._fused(parts), np.cumsum([len(units) for _, _, units in requests])[:-1])

    def _fused(self, parts: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        fuse = standardized if self.fusion == "scores" else reciprocal_ranks
        fused: NDArray[np.float32] = (self.weights @ np.stack([fuse(part) for part in parts])).astype(
            np.float32
        )
        return fused

    def logits(self, raw: NDArray[np.float32]) -> NDArray[np.float32]:
        """A standardized score is the logit; a reciprocal rank becomes a share of the highest one, 1 / 61."""
        return raw if self.fusion == "scores" else log_odds(raw * (RANK_CONSTANT + 1))

    @property
    def count_tokens(self) -> object:
        """The token counter of the first scorer that has one, else None."""
        counters = (getattr(scorer, "count_tokens", None) for scorer in self.scorers)
        return next((counter for counter in counters if counter is not None), None)


def reciprocal_ranks(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """1 / (60 + rank), the best unit having rank 1; equal scores share the mean of their ranks: (units,)."""
    _, inverse, counts = np.unique(-scores, return_inverse=True, return_counts=True)
    first = np.cumsum(counts) - counts  # (distinct scores,) better units
    ranks = (first + (counts + 1) / 2)[inverse]
    return np.asarray(1.0 / (RANK_CONSTANT + ranks), np.float64)


def _own_scores(scorer: Scorer, query: str, text: str, units: Sequence[Unit]) -> NDArray[np.float32]:
    # The logits of a baseline are a nonlinear function of its raw scores, and fusion needs the raw ones.
    score = scorer.raw_scores if isinstance(scorer, Baseline) else scorer.score_units
    return score(query, text, units)


def _own_scores_among(
    scorer: Scorer, requests: Sequence[Request], cancelled: Cancelled, collection: CollectionIndex
) -> Iterable[NDArray[np.float32]]:
    if isinstance(scorer, CollectionBaseline) and scorer.uses_collection:
        return scorer.raw_scores_among(requests, cancelled, collection)
    if isinstance(scorer, Baseline):
        return [scorer.raw_scores(*request) for request in requests]
    return score_batch(scorer, requests, cancelled, collection)
