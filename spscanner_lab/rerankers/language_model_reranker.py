"""A language model that puts the best units of BM25 in order."""

import logging
from collections.abc import Sequence
from typing import Literal

import numpy as np

from spscanner_lab.llm.asking import Asker
from spscanner_lab.llm.language_models import language_model_of
from spscanner_lab.rerankers.asking_scorer import reply_or_none
from spscanner_lab.rerankers.orders import ORDERS, Comparison
from spscanner_rag.baselines.arguments import check_whole
from spscanner_rag.baselines.baseline import Baseline, Scores, log_odds
from spscanner_rag.baselines.bm25 import BM25
from spscanner_rag.baselines.cascade import above_the_rest
from spscanner_rag.baselines.unit_kinds import UnitKind
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.results.ranking import rank
from spscanner_rag.scorers import Cancelled, Request, check_query, never, stop_if
from spscanner_rag.text.units import Segmenter

Order = Literal["listwise", "pairwise", "setwise"]

_LOGGER = logging.getLogger(__name__)


class LanguageModelReranker(Baseline):
    """A language model ranks the best units of BM25, which stay above the rest.

    "listwise" is RankGPT (Sun et al., 2023), "pairwise" PRP-Sliding-K (Qin et al.,
    2023), and "setwise" that of Zhuang et al. (2023); see `orders`. The scores say the
    order alone: of m units that the model ranked, the one at rank r has m + 1 - r of
    m + 1. A prompt without a usable reply leaves the order as it was, and a warning
    counts such prompts.

    Parameters
    ----------
    model : object
        A LlamaIndex or LangChain model, or a function; see `language_model_of`.
    order : str, default "listwise"
        "listwise", "pairwise" or "setwise".
    unit : str or Segmenter, default "sentence"
        See `Baseline`.
    best : int, default 100
        Number of units that are ranked, over all texts that are asked together.
    passage_words : int, default 300
        Longer units are cut to this many words in prompts, as by RankGPT.
    asker : Asker, optional
        How the model is asked; with a `ReplyFile`, no prompt is asked again after a
        reply. Default: an `Asker` that stores nothing.

    Examples
    --------
    >>> from spscanner_lab.rerankers.language_model_reranker import (
    ...     LanguageModelReranker,
    ... )
    >>> from spscanner_lab.synthesis.scripted import model_of
    >>> reranker = LanguageModelReranker(model_of("scripted"), "setwise")
    >>> reranker.name
    'setwise:scripted'
    """

    def __init__(
        self,
        model: object,
        order: Order = "listwise",
        unit: UnitKind | Segmenter = "sentence",
        *,
        best: int = 100,
        passage_words: int = 300,
        asker: Asker | None = None,
    ) -> None:
        super().__init__(unit)
        check_whole(best=best, passage_words=passage_words)
        if order not in ORDERS:
            raise ValueError(f"order is {order!r}; expected one of {', '.join(ORDERS)}")
        self.order = order
        self.best = best
        self.passage_words = passage_words
        self.asker = asker
        self._model = language_model_of(model)
        self._first = BM25(unit)
        self.name = f"{order}:{self._model.name}"

    @property
    def uses_collection(self) -> bool:
        """True, since the units to rank are the best of all texts."""
        return True

    def raw_scores_many(
        self,
        requests: Sequence[Request],
        cancelled: Cancelled = never,
        among: CollectionIndex | None = None,
    ) -> list[Scores]:
        """Logits of ranks, (units,) each, for the best units of a text or a collection.

        Other units have lower ones, in the order of BM25.
        """
        groups: dict[object, list[int]] = {}
        for number, (query, _, _) in enumerate(requests):
            key = number if among is None else query
            groups.setdefault(key, []).append(number)
        scores = [np.zeros(0, np.float32)] * len(requests)
        for numbers in groups.values():
            requests_together = [requests[number] for number in numbers]
            scores_together = self._scores(requests_together, cancelled, among)
            for number, scores_of_text in zip(numbers, scores_together, strict=True):
                scores[number] = scores_of_text
        return scores

    def _scores(
        self,
        requests: Sequence[Request],
        cancelled: Cancelled,
        collection: CollectionIndex | None,
    ) -> list[Scores]:
        """Rank the best units of all these texts, which are asked one query."""
        first_stage = self._first.score_units_many(
            requests, collection=collection, cancelled=cancelled
        )
        logits = np.concatenate([scores.logits for scores in first_stage])
        best = rank(logits)[: self.best]
        ranked = self._ranked(requests, best.tolist(), cancelled)
        shares = np.zeros(len(logits), np.float64)
        shares[ranked] = 1 - np.arange(1, len(ranked) + 1) / (len(ranked) + 1)
        is_ranked = shares > 0
        scores = above_the_rest(logits, is_ranked, log_odds(shares[is_ranked]))
        ends = np.cumsum([len(units) for _, _, units in requests])
        return np.split(scores, ends[:-1])

    def _ranked(
        self, requests: Sequence[Request], best: list[int], cancelled: Cancelled
    ) -> list[int]:
        """Return numbers of units, over all texts, in the order of the model."""
        passages = []
        for _, text, units in requests:
            for unit in units:
                words = unit.text_with_headings(text).split()
                passages.append(" ".join(words[: self.passage_words]))
        asker = self.asker or Asker()
        failures = 0

        def ask(prompt: str) -> str | None:
            nonlocal failures
            stop_if(cancelled, "between two prompts")
            reply = reply_or_none(asker, self._model, prompt)
            failures += reply is None
            return reply

        order = list(best)
        query = check_query(requests[0][0])
        ORDERS[self.order](order, Comparison(query, passages, ask))
        if failures:
            _LOGGER.warning(
                "%s: %d prompts had no reply; their passages stay in their order",
                self.name,
                failures,
            )
        return order
