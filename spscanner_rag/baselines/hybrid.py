"""Fusion of the scores of several scorers."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.baselines.base import Baseline, CollectionBaseline, Combined, Scores, log_odds, name_of
from spscanner_rag.baselines.units import UnitKind
from spscanner_rag.lexical.bm25 import Moments
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.scorers import Cancelled, Request, Scorer, never, score_batch
from spscanner_rag.text.units import Segmenter

Fusion = Literal["scores", "ranks"]

RANK_CONSTANT = 60  # the constant of reciprocal-rank fusion (Cormack et al., 2009)


class Hybrid(Combined):
    """Fuses the scores or ranks of several scorers.

    The raw score of a unit is the mean over the scorers of (s - mean) / deviation, for the scorer's own
    score s, or of 1 / (60 + rank), which is reciprocal rank fusion (Cormack et al., 2009).

    Parameters
    ----------
    scorers : sequence of Scorer
        At least two; scanners, baselines or others.
    fusion : "scores" or "ranks", default "scores"
        "scores" standardizes each scorer's scores over the units of the document; with "ranks", units of the same
        score share their mean rank.
    unit : str or Segmenter, optional
        See `Baseline`. Default: the units of the first scorer.
    """

    def __init__(
        self,
        scorers: Sequence[Scorer],
        fusion: Fusion = "scores",
        *,
        unit: UnitKind | Segmenter | None = None,
    ) -> None:
        super().__init__(scorers, unit)
        if len(scorers) < 2:
            raise ValueError(f"got {len(scorers)} scorers; expected at least two")
        if fusion not in ("scores", "ranks"):
            raise ValueError(f"fusion is {fusion!r}; expected 'scores' or 'ranks'")
        self.fusion = fusion
        self.name = "hybrid:" + "+".join(map(name_of, scorers))

    def raw_scores_many(
        self, requests: Sequence[Request], cancelled: Cancelled = never, among: CollectionIndex | None = None
    ) -> Iterator[Scores]:
        """Fused scores or ranks among the units of a text, or of all texts of a collection: (units,) each."""
        parts = [_own_scores(scorer, requests, cancelled, among) for scorer in self.scorers]
        if among is None:
            for scored in zip(*parts, strict=True):
                yield self._fused(scored) if len(scored[0]) else scored[0]
        else:
            pools = [np.concatenate([np.zeros(0, np.float32), *scored]) for scored in parts]
            yield from np.split(self._fused(pools), np.cumsum([len(units) for _, _, units in requests])[:-1])

    @property
    def uses_collection(self) -> bool:  # type: ignore[override]
        """True if any of the scorers depends on the other texts of a collection."""
        return any(getattr(scorer, "uses_collection", False) for scorer in self.scorers)

    def _fused(self, parts: Sequence[Scores]) -> Scores:
        fuse = standardized if self.fusion == "scores" else reciprocal_ranks
        return np.asarray(np.mean([fuse(part) for part in parts], axis=0), np.float32)

    def logits(self, raw: Scores) -> Scores:
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


def _own_scores(
    scorer: Scorer, requests: Sequence[Request], cancelled: Cancelled, collection: CollectionIndex | None
) -> Iterable[Scores]:
    """The raw scores of a baseline, since its logits are a nonlinear function of them; of others the logits."""
    if isinstance(scorer, CollectionBaseline) and scorer.uses_collection:
        return scorer.raw_scores_many(requests, cancelled, collection)
    if isinstance(scorer, Baseline):
        return scorer.raw_scores_many(requests, cancelled)
    return score_batch(scorer, requests, cancelled, collection)


def standardized(scores: Scores) -> NDArray[np.float64]:
    """Z-scores of units among themselves; 0 if none differ: (units,)."""
    return Moments.of(scores).standardize(scores)
