"""Score several texts for one query, select the best sentences of all of them, and find where they come from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_rag import results
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.results import Passage, ScanResult
from spscanner_rag.results.selection import Order, sigmoid
from spscanner_rag.retrieval.joined_text import RUN_SEPARATOR, JoinedText, Place
from spscanner_rag.scorers import (
    Cancelled,
    Scorer,
    check_query,
    never,
    score_batch,
    segment,
    stop_if,
    words_together,
)
from spscanner_rag.text.token_counts import CountTokens, budget_counter
from spscanner_rag.text.units import Segmenter, Unit

_BETWEEN_TEXTS = "\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection(results.Selection):
    """The selection of a search: over all texts together, best first unless ``order`` says otherwise.

    ``"document"`` order is the order of the texts, then that within each.
    """

    order: Order = "score"


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


def search(
    scorer: Scorer,
    query: str,
    texts: Sequence[JoinedText],
    choose: Selection,
    *,
    collection: CollectionIndex | None = None,
    batch_size: int = 64,
    cancelled: Cancelled = never,
) -> list[Hit]:
    """Score the sentences of several texts, ``batch_size`` texts at a time, and select the best.

    The texts are read as parts of one collection, so that their scores compare: they themselves are the collection
    unless ``collection`` has the words of a larger one. Sentences that overlap no piece are scored but not
    selected. ``choose`` also sets the order of the hits.
    """
    check_query(query)
    check_batch_size(batch_size)
    count_tokens = choose.count_tokens
    if count_tokens is None:
        count_tokens = getattr(scorer, "count_tokens", None)
    counter = budget_counter(choose.max_tokens, count_tokens, type(scorer).__name__)
    pool = _Pool(query, texts, counter)
    counted: list[list[Unit]] = []
    if collection is None and len(texts) > 1 and getattr(scorer, "uses_collection", False):
        counted = [_cut_before(scorer, texts, number, cancelled) for number in range(len(texts))]
        collection = words_together(scorer, counted, cancelled)
    for first in range(0, len(texts), batch_size):
        batch = range(first, min(first + batch_size, len(texts)))
        cuts = [counted[i] if counted else _cut_before(scorer, texts, i, cancelled) for i in batch]
        requests = [(query, texts[number].text, units) for number, units in zip(batch, cuts, strict=True)]
        scored = score_batch(scorer, requests, cancelled, collection)
        for number, units, logits in zip(batch, cuts, scored, strict=True):
            pool.add(number, units, logits)
    return pool.hits(choose)


def check_batch_size(batch_size: object) -> None:
    """Raise ``ValueError`` unless it is an integer of at least 1."""
    if type(batch_size) is not int or batch_size < 1:
        raise ValueError(f"batch_size: got {batch_size!r}; expected an integer of at least 1")


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


class _Pool:
    """The sentences of all texts as one scan result, in which context and merging stay within one block."""

    def __init__(self, query: str, texts: Sequence[JoinedText], count_tokens: CountTokens | None) -> None:
        self.query, self.texts, self.count_tokens = query, texts, count_tokens
        lengths = [len(joined.text) + len(_BETWEEN_TEXTS) for joined in texts]
        self.offsets = np.cumsum([0, *lengths[:-1]])  # offset of each text in the pool: (texts,)
        self.sentences: list[tuple[int, int, float, int, int]] = []  # start, end, logit, text, block
        self._block = 0
        self._best = np.full(len(texts), -np.inf, np.float32)  # best logit of each text: (texts,)

    def add(self, number: int, units: Sequence[Unit], logits: NDArray[np.float32]) -> None:
        """Add the units of one text, except those outside its pieces."""
        joined, offset = self.texts[number], int(self.offsets[number])
        self._best[number] = max(logits, default=-np.inf)
        blocks = np.searchsorted(joined.blocks, [unit.start for unit in units], "right")
        previous: tuple[int, int] | None = None  # index and block of the unit before
        for i, (unit, block, logit) in enumerate(zip(units, blocks.tolist(), logits.tolist(), strict=True)):
            if not joined.touches(unit.start, unit.end):
                continue
            self._block += previous != (i - 1, block)
            previous = (i, block)
            self.sentences.append((offset + unit.start, offset + unit.end, logit, number, self._block))

    def hits(self, choose: Selection) -> list[Hit]:
        """The selected passages."""
        if not self.sentences:
            return []
        starts, ends, logits, owners, blocks = map(np.array, zip(*self.sentences, strict=True))
        text = _BETWEEN_TEXTS.join(joined.text for joined in self.texts)
        logits = logits.astype(np.float32)
        result = ScanResult(self.query, text, starts, ends, logits, self.count_tokens, blocks)
        picks = result.picks(choose, owners)
        passages = result.passages(
            picks, choose.max_tokens, context=choose.context, order=choose.order, merge=choose.merge
        )
        return [self._hit(result, passage) for passage in passages]

    def _hit(self, result: ScanResult, passage: Passage) -> Hit:
        number = int(np.searchsorted(self.offsets, passage.start, "right")) - 1
        offset = int(self.offsets[number])
        first, stop = np.searchsorted(result.starts, (passage.start, passage.end))
        logit = float(result.logits[first:stop].max())
        start, end = passage.start - offset, passage.end - offset
        place = self.texts[number].place(start, end)
        best = float(sigmoid(self._best[number]))
        return Hit(passage.text, passage.score, logit, number, place, start, end, best)
