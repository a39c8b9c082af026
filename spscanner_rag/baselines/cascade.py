"""Two scorers, one after the other: the second reads only what the first likes best."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.baselines.arguments import check_whole
from spscanner_rag.baselines.baseline import Scores
from spscanner_rag.baselines.bundled_token_counter import bundled_token_counter
from spscanner_rag.baselines.combined import Combined, apart, joined, logits_of
from spscanner_rag.baselines.unit_kinds import UnitKind
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.results import ScanResult
from spscanner_rag.results.coverage import Spans
from spscanner_rag.results.ranking import rank
from spscanner_rag.scorers import Cancelled, Request, Scorer, never, stop_if
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.token_counts import CountTokens
from spscanner_rag.text.units import Segmenter, Unit

# Units that the second stage did not read score below this; `log_odds` stays above it.
UNREAD_LOGIT = -17.0


class Cascade(Combined):
    """Lets the second scorer read only the ``best`` units of the first.

    This is the retrieve-and-rerank pipeline of Nogueira and Cho (2019). The best units
    are those of all texts that are asked together. The units that the second stage
    reads have its logits. The others rank below them and below `UNREAD_LOGIT`, with the
    first stage's order and differences.

    With ``tokens``, units are read as KeyB reads documents (Li et al., "The Power of
    Selecting Key Blocks with Local Pre-ranking for Long Document Information
    Retrieval", 2023): the first stage scores the sentences of a unit, the best ones
    that fit into this many tokens are joined in document order, and the second stage
    reads them once, as one text. If no sentence fits, it reads the best one.

    Parameters
    ----------
    first, second : Scorer
        The stages.
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
        if unit is None and tokens is not None:
            unit = "document"
        super().__init__((first, second), unit)
        check_whole(best=best)
        if tokens is not None:
            check_whole(tokens=tokens)
        if not self._unit_was_given:
            _check_same_units(first, second)
        self.best = best
        self.tokens = tokens
        bound = str(best) if tokens is None else f"{tokens}tokens"
        self.name = f"cascade:{first.name}>{second.name}@{bound}"

    @cached_property
    def count_tokens(self) -> CountTokens:
        """The second stage's token counter, else the bundled scanner's."""
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
        """The second stage's logits of the best units, lower ones for the others.

        The best are those of each text, or of all texts of a collection.
        """
        if among is None:
            scores = []
            for request in requests:
                scores += self._scores([request], cancelled, None)
            return scores
        requests_by_query: dict[str, list[Request]] = {}
        for request in requests:
            requests_by_query.setdefault(request[0], []).append(request)
        scores_by_query = {}
        for query, requests_of_query in requests_by_query.items():
            scores = self._scores(requests_of_query, cancelled, among)
            scores_by_query[query] = iter(scores)
        return [next(scores_by_query[query]) for query, _, _ in requests]

    def _scores(
        self,
        requests: Sequence[Request],
        cancelled: Cancelled,
        collection: CollectionIndex | None,
    ) -> list[Scores]:
        """The scores of texts with the same query, (units,) each."""
        first, second = self.scorers
        if self.tokens is not None:
            key_blocks = self._key_block_requests(requests, cancelled)
            return apart(joined(logits_of(second, key_blocks, cancelled)), requests)
        first_logits = joined(logits_of(first, requests, cancelled, collection))
        chosen = np.zeros(len(first_logits), bool)
        chosen[rank(first_logits)[: self.best]] = True
        chosen_requests: list[Request] = []
        for request, chosen_of_text in zip(
            requests, apart(chosen, requests), strict=True
        ):
            query, text, units = request
            numbers = np.flatnonzero(chosen_of_text).tolist()
            chosen_requests.append((query, text, [units[number] for number in numbers]))
        second_logits = logits_of(second, chosen_requests, cancelled, collection)
        scores = above_the_rest(first_logits, chosen, joined(second_logits))
        return apart(scores, requests)

    def _key_block_requests(
        self, requests: Sequence[Request], cancelled: Cancelled
    ) -> list[Request]:
        """A request for every unit, to read its key blocks as one text."""
        key_block_requests: list[Request] = []
        for query, text, units in requests:
            for unit in units:
                blocks = self._key_blocks(
                    query, unit.text_with_headings(text), cancelled
                )
                one_unit = [Unit(0, len(blocks), blocks)]
                key_block_requests.append((query, blocks, one_unit))
        return key_block_requests

    def _key_blocks(self, query: str, text: str, cancelled: Cancelled) -> str:
        """The best sentences of a text that fit into the budget, in its order."""
        stop_if(cancelled, "between two units")
        sentences = SentenceSegmenter().segment(text)
        if len(sentences) < 2:
            return text
        request = (query, text, sentences)
        (logits,) = logits_of(self.scorers[0], [request], cancelled)
        result = ScanResult(
            query, text, *Spans.of(sentences), logits, self.count_tokens
        )
        context = result.context(top_k=None, max_tokens=self.tokens)
        if context:
            return context
        best = sentences[int(rank(logits)[0])]
        return text[best.start : best.end]


def _check_same_units(first: Scorer, second: Scorer) -> None:
    """Raise ``ValueError`` if two scorers rank different units, as far as is known."""
    if None in (first.unit_name, second.unit_name):
        return
    if first.unit_name != second.unit_name:
        raise ValueError(
            f"the first stage cuts {first.unit_name!r} and the second"
            f" {second.unit_name!r}; expected the same units: load both with one unit,"
            " or pass unit="
        )


def above_the_rest(
    first: NDArray[np.floating], was_read: NDArray[np.bool_], second: Scores
) -> Scores:
    """Return logits that put the units that were read above all others: (units,).

    Parameters
    ----------
    first : array, (units,)
        The logits of the first stage. Units that were not read keep their differences
        of it, below all of ``second`` and below `UNREAD_LOGIT`.
    was_read : array of bool, (units,)
        Which units the second stage read.
    second : array, (units that were read,)
        Its logits.
    """
    scores = np.empty(len(first), np.float32)
    scores[was_read] = second
    unread = first[~was_read].astype(np.float64)
    if len(unread):
        ceiling = min(float(second.min(initial=np.inf)), UNREAD_LOGIT) - 1
        scores[~was_read] = unread - unread.max() + ceiling
    return scores
