"""Score several texts for one query, select the best sentences of all of them, and find where they come from."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_rag import results
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.results import ScanResult
from spscanner_rag.results.selection import Order, sigmoid
from spscanner_rag.results.together import Together
from spscanner_rag.retrieval.joined_text import RUN_SEPARATOR, JoinedText, Place
from spscanner_rag.scorers import Cancelled, Scorer, never, score_batch, segment, stop_if, words_together
from spscanner_rag.text.token_counts import CountTokens, budget_counter
from spscanner_rag.text.units import Segmenter, Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection(results.Selection):
    """The selection of a search: over all texts together, best first unless ``order`` is "document"."""

    order: Order = "score"
    require_answer: float | None = None
    """The lowest probability that a text answers, of those that anything is taken of."""

    def __post_init__(self) -> None:
        results.Selection.__post_init__(self)
        least = self.require_answer
        if least is not None and not (type(least) in (int, float) and 0 <= least <= 1):
            raise ValueError(f"require_answer: got {least!r}; expected a probability from 0 to 1, or None")


class Hit(NamedTuple):
    """A selected passage and where it comes from."""

    text: str
    score: float  # the score of its best sentence: the sigmoid of the logit
    logit: float
    joined: int  # index of its text
    place: Place
    start: int  # its span in that text
    end: int
    document_score: float  # the score of the best sentence of its text, selected or not
    answerable: float | None = None  # the probability that its text answers, where the scorer says it


@dataclass(frozen=True)
class Scored:
    """Texts with the scores of their sentences, of which hits are selected."""

    texts: Sequence[JoinedText]
    scanned: Sequence[ScanResult]
    best: Sequence[float]  # of each text, the score of its best sentence
    answerable: Sequence[float | None]  # of each text

    @cached_property
    def _together(self) -> Together:
        return Together(self.scanned)

    def hits(self, choose: Selection) -> list[Hit]:
        """The passages of a selection."""
        hits = []
        for number, passage in self._together.select(choose) if self.texts else ():
            start, end, own = passage.start, passage.end, self.scanned[number]
            logit = float(own.logits[slice(*np.searchsorted(own.starts, (start, end)))].max())
            place = self.texts[number].place(start, end)
            of_text = self.best[number], self.answerable[number]
            hits.append(Hit(passage.text, passage.score, logit, number, place, start, end, *of_text))
        return hits


def score(
    scorer: Scorer,
    query: str,
    texts: Sequence[JoinedText],
    choose: Selection,
    *,
    collection: CollectionIndex | None = None,
    batch_size: int = 64,
    cancelled: Cancelled = never,
) -> Scored:
    """Score the sentences of several texts, ``batch_size`` texts at a time, for selections like ``choose``.

    The texts are one collection, or ``collection`` has the words of a larger one. Sentences that overlap no piece
    are scored but not selected, nor are those of texts below ``require_answer``, a ``ValueError`` where the scorer
    does not say how probably a text answers.
    """
    count_tokens = choose.count_tokens
    if count_tokens is None:
        count_tokens = getattr(scorer, "count_tokens", None)
    counter = budget_counter(choose.max_tokens, count_tokens, type(scorer).__name__)
    if choose.require_answer is not None and not getattr(scorer, "says_answers", False):
        raise ValueError(
            f"require_answer: {type(scorer).__name__} does not say how probably a text answers; expected a "
            "scanner with its own encoder, such as the bundled one, or threshold= instead"
        )
    counted: list[list[Unit]] = []
    if collection is None and len(texts) > 1 and getattr(scorer, "uses_collection", False):
        counted = [_cut_before(scorer, texts, number, cancelled) for number in range(len(texts))]
        collection = words_together(scorer, counted, cancelled)
    scanned: list[ScanResult] = []
    best: list[float] = []  # of each text, the score of its best sentence
    answerable: list[float | None] = []  # of each text
    for first in range(0, len(texts), batch_size):
        batch = range(first, min(first + batch_size, len(texts)))
        cuts = [counted[i] if counted else _cut_before(scorer, texts, i, cancelled) for i in batch]
        requests = [(query, texts[number].text, units) for number, units in zip(batch, cuts, strict=True)]
        scored = score_batch(scorer, requests, cancelled, collection, answerable)
        for number, units, logits in zip(batch, cuts, scored, strict=True):
            answers = choose.require_answer is None or (answerable[-1] or 0.0) >= choose.require_answer
            scanned.append(_scanned(query, texts[number], units if answers else [], logits, counter))
            best.append(float(sigmoid(logits.max(initial=-np.inf))))
    return Scored(texts, scanned, best, answerable)


def _scanned(
    query: str,
    joined: JoinedText,
    units: Sequence[Unit],
    logits: NDArray[np.float32],
    count_tokens: CountTokens | None,
) -> ScanResult:
    """The sentences that overlap a piece; neighbours are in one block, with none left out between them."""
    kept = np.array([i for i, unit in enumerate(units) if joined.touches(unit.start, unit.end)], np.int64)
    starts = np.array([units[i].start for i in kept], np.int64)
    ends = np.array([units[i].end for i in kept], np.int64)
    apart = (np.diff(kept) > 1) | (np.diff(np.searchsorted(joined.blocks, starts, "right")) > 0)
    blocks = np.concatenate([[0], np.cumsum(apart)])[: len(kept)]
    return ScanResult(query, joined.text, starts, ends, logits[kept], count_tokens, blocks)


def _cut_before(scorer: Scorer, texts: Sequence[JoinedText], number: int, cancelled: Cancelled) -> list[Unit]:
    stop_if(cancelled, f"before text {number + 1} of {len(texts)}")
    return cut(scorer, texts[number])


def cut(scorer: Scorer | Segmenter, joined: JoinedText) -> list[Unit]:
    """Segment each block on its own. The separator after it is read with it, so that no word joins two blocks."""
    if len(joined.blocks) == 1:
        return segment(scorer, joined.text)
    units: list[Unit] = []
    stops = [*joined.blocks, len(joined.text)][1:]
    for block, stop in zip(joined.blocks, stops, strict=True):
        own = segment(scorer, joined.text[block:stop])
        if own and units and not (units[-1].model_text[-1:].isspace() or own[0].model_text[:1].isspace()):
            # `ReferenceSegmenter` trims the white space at both ends.
            own = [own[0]._replace(model_text=RUN_SEPARATOR + own[0].model_text), *own[1:]]
        units += (Unit(block + start, block + end, model_text) for start, end, model_text in own)
    return units
