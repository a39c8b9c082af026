"""Retrievers made of others: cascades, which run one after the other, and hybrids, which fuse scores."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.baselines.base import (
    Baseline,
    Scores,
    UnitKind,
    check_whole,
    log_odds,
    segmenter_of,
)
from spscanner_rag.checkpoint import locate
from spscanner_rag.checkpoint.file_access import TOKENIZER
from spscanner_rag.checkpoint.tokenizer_file import read_tokenizer
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.lexical.moments import Moments
from spscanner_rag.results import ScanResult
from spscanner_rag.results.ranking import rank
from spscanner_rag.scorers import (
    Cancelled,
    Request,
    Scorer,
    check_scorer,
    never,
    score_batch,
    stop_if,
)
from spscanner_rag.text.block_segmentation import segment_blocks
from spscanner_rag.text.blocks import Block
from spscanner_rag.text.encoding import token_counter
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.token_counts import CountTokens
from spscanner_rag.text.units import Segmenter, Unit

# units that the second stage did not read score below this; `log_odds` stays above it
UNREAD_LOGIT = -17.0
RANK_CONSTANT = 60  # the constant of reciprocal-rank fusion (Cormack et al., 2009)


class Combined(Baseline):
    """A baseline made of other scorers (else ``TypeError``).

    The first cuts the units, unless ``unit`` is given.

    If units are sentences, a scanner among the scorers cuts them: published ones were
    trained on their own kind.
    """

    def __init__(
        self, scorers: Sequence[Scorer], unit: UnitKind | Segmenter | None
    ) -> None:
        super().__init__("sentence" if unit is None else unit)
        for scorer in scorers:
            check_scorer(scorer)
        self._scorers = tuple(scorers)
        self._own_units = unit is not None

    @property
    def scorers(self) -> tuple[Scorer, ...]:
        """The scorers that this one is made of, in order."""
        return self._scorers

    def units_of(self, text: str, blocks: Sequence[Block] = ()) -> list[Unit]:
        """Cut a text into ``unit``, else as the first scorer does.

        For sentences, see the class.
        """
        if blocks and self.unit == "sentence":
            return segment_blocks(text, blocks, self.units_of)
        segmenter = None
        if self.unit == self.unit_name == "sentence":
            segmenter = self.segmenter
        if segmenter is not None and segmenter.name != "sentence":
            return segmenter.segment(text)
        if self._own_units:
            return segmenter_of(self.unit).segment(text)
        return self.scorers[0].units_of(text)

    @property
    def unit_name(self) -> str | None:
        """The name of ``unit`` if it was given, else of the first scorer's units."""
        return super().unit_name if self._own_units else self.scorers[0].unit_name

    @property
    def keeps_texts(self) -> bool:
        """True if any of the scorers keeps what it computed for a text."""
        return any(scorer.keeps_texts for scorer in self.scorers)


class Cascade(Combined):
    """The first scorer scores all units, and the second only the ``best`` of all texts that are asked together.

    This is the retrieve-and-rerank pipeline of Nogueira and Cho (2019). The units that
    the second stage reads have its logits. The others rank below them and below
    `UNREAD_LOGIT`, with the first stage's order and differences.

    With ``tokens``, units are read as KeyB reads documents (Li et al., "The Power of
    Selecting Key Blocks with Local Pre-ranking for Long Document Information
    Retrieval", 2023): the first stage scores the sentences of a unit, the best ones
    that fit into this many tokens are joined in document order, and the second stage
    reads them once, as one text. If no sentence fits, it reads the best one.

    Parameters
    ----------
    best : int, default 50
        Number of units that the second stage reads. Ignored with ``tokens``.
    tokens : int, optional
        Tokens of each unit that the second stage reads, as in KeyB, counted by its
        tokenizer if it has one, else by the bundled scanner's.
    unit : str or Segmenter, optional
        See `Baseline`. Default: the units of the first stage; with ``tokens``,
        "document".
    """

    def __init__(
        self,
        first: Scorer,
        second: Scorer,
        *,
        best: int = 50,
        tokens: int | None = None,
        unit: UnitKind | Segmenter | None = None,
    ) -> None:
        super().__init__(
            (first, second), "document" if unit is None and tokens is not None else unit
        )
        check_whole(best=best)
        if tokens is not None:
            check_whole(tokens=tokens)
        cuts = (first.unit_name, second.unit_name)
        if not self._own_units and None not in cuts and cuts[0] != cuts[1]:
            raise ValueError(
                f"the first stage cuts {cuts[0]!r} and the second {cuts[1]!r}; expected"
                " the same units: load both with one unit, or pass unit="
            )
        self.best, self.tokens = best, tokens
        bound = str(best) if tokens is None else f"{tokens}tokens"
        self.name = f"cascade:{first.name}>{second.name}@{bound}"

    @cached_property
    def count_tokens(self) -> Callable[[str], int]:
        """The token counter: the second stage's if it has one, else the bundled scanner's."""
        return self.scorers[1].count_tokens or bundled_token_counter()

    @property
    def uses_collection(self) -> bool:
        """True, since the units to read again are the best of all texts."""
        return True

    def raw_scores_many(
        self,
        requests: Sequence[Request],
        cancelled: Cancelled = never,
        among: CollectionIndex | None = None,
    ) -> list[Scores]:
        """The second stage's logits for the best units of a text or a collection, lower ones for the rest."""
        if among is None:
            return [
                scored
                for request in requests
                for scored in self._staged([request], cancelled, None)
            ]
        found = {query: list[Request]() for query, _, _ in requests}
        for request in requests:
            found[request[0]].append(request)
        scored = {
            query: iter(self._staged(own, cancelled, among))
            for query, own in found.items()
        }
        return [next(scored[query]) for query, _, _ in requests]

    def _staged(
        self,
        requests: Sequence[Request],
        cancelled: Cancelled,
        collection: CollectionIndex | None,
    ) -> list[Scores]:
        stops = np.cumsum([len(units) for _, _, units in requests])[:-1]
        if self.tokens is not None:
            asked = [
                (query, read, [Unit(0, len(read), read)])
                for query, text, units in requests
                for read in (
                    self._key_blocks(query, unit.text_with_headings(text), cancelled)
                    for unit in units
                )
            ]
            return np.split(_joined(_scored(self.scorers[1], asked, cancelled)), stops)
        pool = _joined(_scored(self.scorers[0], requests, cancelled, collection))
        read = np.zeros(len(pool), bool)
        read[rank(pool)[: self.best]] = True
        chosen: list[Request] = [
            (query, text, [unit for unit, kept in zip(units, own, strict=True) if kept])
            for (query, text, units), own in zip(
                requests, np.split(read, stops), strict=True
            )
        ]
        again = _joined(_scored(self.scorers[1], chosen, cancelled, collection))
        return np.split(above_the_rest(pool, read, again), stops)

    def _key_blocks(self, query: str, text: str, cancelled: Cancelled) -> str:
        """The best sentences of a text that fit into the budget, in the order of the text."""
        stop_if(cancelled, "between two units")
        blocks = SentenceSegmenter().segment(text)
        if len(blocks) < 2:
            return text
        (logits,) = _scored(self.scorers[0], [(query, text, blocks)], cancelled)
        starts, ends = np.array([block[:2] for block in blocks]).T
        result = ScanResult(query, text, starts, ends, logits, self.count_tokens)
        best = blocks[int(rank(logits)[0])]
        return (
            result.context(top_k=None, max_tokens=self.tokens)
            or text[best.start : best.end]
        )


def _joined(scores: Iterable[Scores]) -> Scores:
    return np.concatenate([np.zeros(0, np.float32), *scores])


def _scored(
    scorer: Scorer,
    requests: Sequence[Request],
    cancelled: Cancelled,
    collection: CollectionIndex | None = None,
) -> list[Scores]:
    """The logits of the units of each text, (units,) each."""
    scores = score_batch(scorer, requests, cancelled, collection)
    return [scores_of_text.logits for scores_of_text in scores]


def above_the_rest(first: Scores, read: NDArray[np.bool_], second: Scores) -> Scores:
    """Logits, (units,): ``second`` for units that were ``read``, lower ones by ``first``, (units,), for the rest.

    The rest keeps its differences, below all of ``second`` and below `UNREAD_LOGIT`.
    """
    scores = np.empty(len(first), np.float32)
    scores[read] = second
    rest = first[~read].astype(np.float64)
    if len(rest):
        scores[~read] = (
            rest - rest.max() + min(float(second.min(initial=np.inf)), UNREAD_LOGIT) - 1
        )
    return scores


def bundled_token_counter() -> CountTokens:
    """Return a function that counts tokens with the bundled checkpoint's tokenizer.

    No model is loaded.
    """
    return token_counter(read_tokenizer(locate(None) / TOKENIZER))


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
        """Fused scores or ranks among the units of a text, or of all texts of a collection: (units,) each."""
        # raw scores of baselines, because their logits are a nonlinear function of
        # these
        parts = [
            (
                scorer.raw_scores_among(requests, cancelled, among)
                if isinstance(scorer, Baseline)
                else _scored(scorer, requests, cancelled, among)
            )
            for scorer in self.scorers
        ]
        if among is None:
            for scored in zip(*parts, strict=True):
                yield self._fused(scored) if len(scored[0]) else scored[0]
        else:
            pools = [_joined(scored) for scored in parts]
            yield from np.split(
                self._fused(pools),
                np.cumsum([len(units) for _, _, units in requests])[:-1],
            )

    @property
    def uses_collection(self) -> bool:
        """True if any of the scorers depends on the other texts of a collection."""
        return any(scorer.uses_collection for scorer in self.scorers)

    def _fused(self, parts: Sequence[Scores]) -> Scores:
        fuse = standardized if self.fusion == "scores" else reciprocal_ranks
        return np.asarray(np.mean([fuse(part) for part in parts], axis=0), np.float32)

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


def reciprocal_ranks(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """1 / (60 + rank), where the best unit has rank 1 and equal scores share their mean rank: (units,)."""
    _, inverse, counts = np.unique(-scores, return_inverse=True, return_counts=True)
    first = np.cumsum(counts) - counts  # (distinct scores,): number of better units
    ranks = (first + (counts + 1) / 2)[inverse]
    return np.asarray(1.0 / (RANK_CONSTANT + ranks), np.float64)


def standardized(scores: Scores) -> NDArray[np.float64]:
    """Z-scores of the units' scores; 0 if all are equal: (units,)."""
    return Moments.of(scores).standardize(scores)
