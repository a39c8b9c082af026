"""Scores the sentences of joined texts, and selects hits from all of them together."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.results import Passage, ScanResult, Selection
from spscanner_rag.results.ranking import sigmoid
from spscanner_rag.results.together import Together
from spscanner_rag.retrieval.hits import Hit
from spscanner_rag.retrieval.joined_text import JoinedText
from spscanner_rag.retrieval.prepared_texts import PrepareText, prepared_text
from spscanner_rag.scorers import (
    Cancelled,
    PreparedText,
    Scorer,
    UnitScores,
    never,
    score_prepared_batch,
    stop_if,
)
from spscanner_rag.text.keep_scale import KeepScale
from spscanner_rag.text.token_counts import CountTokens, budget_counter
from spscanner_rag.text.units import Unit

_COUNTED_BYTES = 2**28
"""Most bytes of texts that stay prepared from the counting of their words until they
are scored, whatever is kept for later questions."""


@dataclass(frozen=True)
class ScoredTexts:
    """Texts with the scores of their sentences, from which hits are selected.

    Attributes
    ----------
    texts : sequence of JoinedText
        The texts.
    results : sequence of ScanResult
        For each text, its sentences that overlap a piece.
    best : sequence of float
        For each text, the highest logit.
    answerable : sequence of float or None
        For each text, the probability that it answers.
    """

    texts: Sequence[JoinedText]
    results: Sequence[ScanResult]
    best: Sequence[float]
    answerable: Sequence[float | None]

    def hits(self, selection: Selection) -> list[Hit]:
        """The passages of a selection."""
        if not self.texts:
            return []
        passages = self._together.select(selection)
        return [self._hit(number, passage) for number, passage in passages]

    @cached_property
    def _together(self) -> Together:
        return Together(self.results)

    def _hit(self, number: int, passage: Passage) -> Hit:
        result = self.results[number]
        start = passage.start
        end = passage.end
        first, stop = np.searchsorted(result.starts, (start, end))
        logit = float(result.logits[first:stop].max())
        return Hit(
            text=passage.text,
            score=passage.score,
            logit=logit,
            probability=_probability(logit),
            text_number=number,
            place=self.texts[number].place(start, end),
            start=start,
            end=end,
            document_score=self._shown_score(self.best[number]),
            answerable=self.answerable[number],
        )

    def _shown_score(self, logit: float) -> float:
        """The score of a sentence with this logit, on the scale of the hits."""
        joined = self._together.joined
        if joined.keep_scale is None:
            return _probability(logit)
        scores = joined.keep_scale.scores_below(
            np.array([logit], np.float32), self._highest_logit, joined.answerable
        )
        return float(scores[0])

    @cached_property
    def _highest_logit(self) -> float:
        return float(self._together.joined.logits.max(initial=-np.inf))


def score_texts(
    scorer: Scorer,
    query: str,
    texts: Sequence[JoinedText],
    selection: Selection,
    *,
    collection: CollectionIndex | None = None,
    prepare: PrepareText = prepared_text,
    batch_size: int = 64,
    cancelled: Cancelled = never,
) -> ScoredTexts:
    """Score the sentences of several texts.

    Sentences that overlap no piece are scored but not selected.

    Parameters
    ----------
    scorer : Scorer
        What scores.
    query : str
        The query.
    texts : sequence of JoinedText
        What is scored.
    selection : Selection
        What hits will be selected by; another ``max_tokens`` is possible.
    collection : CollectionIndex, optional
        The words of a larger collection. Default: the texts are one collection.
    prepare : callable
        Returns a text as the scorer has prepared it.
    batch_size : int
        Number of texts that the scorer gets at a time.
    cancelled : callable
        Ends the work.

    Raises
    ------
    ValueError
        For a budget without a token counter, or for ``require_answer`` if the scorer
        does not report the probability that a text answers.

    Examples
    --------
    >>> from spscanner_rag.baselines.bm25 import BM25
    >>> from spscanner_rag.retrieval import Piece, join_pieces
    >>> story = Piece(text="A ship came. It carried tea.", key="1", source="a", start=0)
    >>> selection = Selection(top_k=1)
    >>> scored = score_texts(BM25(), "Which tea?", join_pieces([story]), selection)
    >>> [hit.text for hit in scored.hits(selection)]
    ['It carried tea.']
    """
    counter = _counter(scorer, selection)
    _check_says_answers(scorer, selection)
    _check_keeps(scorer, selection)
    counted: dict[int, PreparedText] = {}

    def prepared(number: int) -> PreparedText:
        if number in counted:
            return counted.pop(number)
        stop_if(cancelled, f"before text {number + 1} of {len(texts)}")
        return prepare(scorer, texts[number], cancelled)

    if collection is None and len(texts) > 1 and scorer.uses_collection:
        collection = CollectionIndex()
        n_bytes = 0
        for number in range(len(texts)):
            text = prepared(number)
            collection.add_words(str(number), text.words)
            n_bytes += text.nbytes
            if n_bytes <= _COUNTED_BYTES:
                counted[number] = text
    scale = scorer.keep_scale
    scores_of_texts: list[UnitScores] = []
    results: list[ScanResult] = []
    for first in range(0, len(texts), batch_size):
        numbers = range(first, min(first + batch_size, len(texts)))
        batch = [prepared(number) for number in numbers]
        scores_of_batch = score_prepared_batch(
            scorer, query, batch, cancelled, collection
        )
        for number, text, scores in zip(numbers, batch, scores_of_batch, strict=True):
            results.append(
                _result(query, texts[number], text.units, scores, counter, scale)
            )
        scores_of_texts += scores_of_batch
    best = [float(each.logits.max(initial=-np.inf)) for each in scores_of_texts]
    answerable = [scores.answerable for scores in scores_of_texts]
    return ScoredTexts(texts, results, best, answerable)


def _counter(scorer: Scorer, selection: Selection) -> CountTokens | None:
    count_tokens = selection.count_tokens
    if count_tokens is None:
        count_tokens = scorer.count_tokens
    return budget_counter(selection.max_tokens, count_tokens, type(scorer).__name__)


def _check_says_answers(scorer: Scorer, selection: Selection) -> None:
    if selection.require_answer is not None and not scorer.says_answers:
        raise ValueError(
            f"require_answer: {type(scorer).__name__} does not report whether a text"
            " answers; expected a scanner with its own encoder, such as the bundled"
            " one: use that, or threshold= instead"
        )


def _probability(logit: float) -> float:
    return float(sigmoid(np.array([logit]))[0])


def _check_keeps(scorer: Scorer, selection: Selection) -> None:
    if selection.keep is not None and scorer.keep_scale is None:
        raise ValueError(
            f"keep: {type(scorer).__name__} has no relative scores, because its"
            " checkpoint has no spscanner.keep, or it is no scanner with its own"
            " encoder; expected the bundled scanner: use that, or threshold= instead"
        )


def _result(
    query: str,
    joined: JoinedText,
    units: Sequence[Unit],
    scores: UnitScores,
    count_tokens: CountTokens | None,
    keep_scale: KeepScale | None,
) -> ScanResult:
    """The sentences that overlap a piece.

    Those of one block are neighbours, with none left out between them.
    """
    numbers: list[int] = []
    spans: list[tuple[int, int]] = []
    for number, unit in enumerate(units):
        if joined.touches(unit.start, unit.end):
            numbers.append(number)
            spans.append((unit.start, unit.end))
    selectable = np.array(numbers, np.int64)
    starts, ends = np.array(spans, np.int64).reshape(-1, 2).T
    block_numbers = np.searchsorted(joined.blocks, starts, "right")
    apart = (np.diff(selectable) > 1) | (np.diff(block_numbers) > 0)
    neighbourhoods = np.concatenate([[0], np.cumsum(apart)])[: len(numbers)]
    return ScanResult(
        query,
        joined.text,
        starts,
        ends,
        scores.logits[selectable],
        count_tokens,
        neighbourhoods,
        answerable=scores.answerable,
        keep_scale=keep_scale,
        shows_relative=True,
    )
