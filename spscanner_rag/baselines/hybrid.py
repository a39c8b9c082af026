"""Several scorers at once, whose scores or ranks are fused."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.baselines.baseline import Baseline, Scores, log_odds
from spscanner_rag.baselines.combined import Combined, apart, joined, logits_of
from spscanner_rag.baselines.unit_kinds import UnitKind
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.lexical.moments import Moments
from spscanner_rag.scorers import Cancelled, Request, Scorer, never
from spscanner_rag.text.token_counts import CountTokens
from spscanner_rag.text.units import Segmenter

RANK_CONSTANT = 60  # the constant of reciprocal-rank fusion (Cormack et al., 2009)


class Hybrid(Combined):
    """Fuses the scores or ranks of several scorers.

    The raw score of a unit is the mean over the scorers of (s - mean) / deviation,
    where s is the scorer's own score, or of 1 / (60 + rank), which is reciprocal rank
    fusion (Cormack et al., 2009).

    Parameters
    ----------
    scorers : sequence of Scorer
        At least two; scanners, baselines or others.
    fusion : "scores" or "ranks", default "scores"
        "scores" standardizes each scorer's scores over the units of the document; with
        "ranks", units with equal scores share their mean rank.
    unit : str or Segmenter, optional
        See `Baseline`. Default: the units of the first scorer.

    Examples
    --------
    >>> from spscanner_rag.baselines import BM25
    >>> scorer = Hybrid([BM25(), BM25(k1=1.5)], fusion="ranks")
    >>> text = "Ships leave at noon. The keeper signed it. Nobody waits."
    >>> units = scorer.units_of(text)
    >>> int(scorer.score_units("Who signed it?", text, units).argmax())
    1
    """

    def __init__(
        self,
        scorers: Sequence[Scorer],
        fusion: Literal["scores", "ranks"] = "scores",
        *,
        unit: UnitKind | Segmenter | None = None,
    ) -> None:
        super().__init__(scorers, unit)
        if len(scorers) < 2:
            raise ValueError(f"got {len(scorers)} scorers; expected at least two")
        if fusion not in ("scores", "ranks"):
            raise ValueError(f"fusion is {fusion!r}; expected 'scores' or 'ranks'")
        self.fusion = fusion
        self.name = "hybrid:" + "+".join(scorer.name for scorer in scorers)

    def raw_scores_many(
        self,
        requests: Sequence[Request],
        cancelled: Cancelled = never,
        among: CollectionIndex | None = None,
    ) -> Iterator[Scores]:
        """Fused scores or ranks among the units of a text, (units,) each.

        With a collection, among the units of all its texts.
        """
        scores_by_scorer = []
        for scorer in self.scorers:
            scores_by_scorer.append(_own_scores(scorer, requests, cancelled, among))
        if among is None:
            for scores_of_text in zip(*scores_by_scorer, strict=True):
                has_units = len(scores_of_text[0]) > 0
                yield self._fused(scores_of_text) if has_units else scores_of_text[0]
        else:
            pools = [joined(scores) for scores in scores_by_scorer]
            yield from apart(self._fused(pools), requests)

    @property
    def uses_collection(self) -> bool:
        """True if any of the scorers depends on the other texts of a collection."""
        return any(scorer.uses_collection for scorer in self.scorers)

    def _fused(self, scores_by_scorer: Sequence[Scores]) -> Scores:
        fuse: Callable[[Scores], NDArray[np.float64]] = reciprocal_ranks
        if self.fusion == "scores":
            fuse = standardized
        fused = np.mean([fuse(scores) for scores in scores_by_scorer], axis=0)
        return np.asarray(fused, np.float32)

    def logits(self, raw: Scores) -> Scores:
        """A standardized score is the logit.

        A reciprocal rank is taken as a share of the highest, 1 / 61.
        """
        return raw if self.fusion == "scores" else log_odds(raw * (RANK_CONSTANT + 1))

    @property
    def count_tokens(self) -> CountTokens | None:
        """The token counter of the first scorer that has one, else None."""
        for scorer in self.scorers:
            if scorer.count_tokens is not None:
                return scorer.count_tokens
        return None


def _own_scores(
    scorer: Scorer,
    requests: Sequence[Request],
    cancelled: Cancelled,
    among: CollectionIndex | None,
) -> Iterable[Scores]:
    """A baseline's raw scores, as its logits are not linear in them.

    Else logits.
    """
    if isinstance(scorer, Baseline):
        return scorer.raw_scores_among(requests, cancelled, among)
    return logits_of(scorer, requests, cancelled, among)


def reciprocal_ranks(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return 1 / (60 + rank) of each unit, where the best has rank 1: (units,).

    Equal scores share their mean rank.

    Examples
    --------
    >>> import numpy as np
    >>> from spscanner_rag.baselines.hybrid import reciprocal_ranks
    >>> (1 / reciprocal_ranks(np.array([0.2, 0.9, 0.2])) - 60).round(3).tolist()
    [2.5, 1.0, 2.5]
    """
    _, inverse, counts = np.unique(-scores, return_inverse=True, return_counts=True)
    n_better = np.cumsum(counts) - counts  # (distinct scores,)
    ranks = (n_better + (counts + 1) / 2)[inverse]
    return np.asarray(1.0 / (RANK_CONSTANT + ranks), np.float64)


def standardized(scores: Scores) -> NDArray[np.float64]:
    """Return the z-scores of the units' scores, 0 if all are equal: (units,)."""
    return Moments.of(scores).standardize(scores)
