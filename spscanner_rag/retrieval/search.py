"""One search: score texts for a query, select the best sentences of all of them, and make results of these."""

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from spscanner_rag import results
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.results import ScanResult
from spscanner_rag.results.scan_result import Together
from spscanner_rag.results.selection import Order, sigmoid
from spscanner_rag.retrieval.answers import (
    Answer,
    Hit,
    Result,
    ReturnNodes,
    kept_pieces,
    pruned_text,
    reduction_metadata,
)
from spscanner_rag.retrieval.held import HeldCorpus, Item, ReadBounds, ReadText
from spscanner_rag.retrieval.joined_text import JoinedText, cut
from spscanner_rag.retrieval.shared_scanners import ScorerChoice
from spscanner_rag.scorers import (
    Cancelled,
    Scorer,
    never,
    score_batch,
    stop_if,
    words_together,
)
from spscanner_rag.text.token_counts import CountTokens, budget_counter, resolve_counter
from spscanner_rag.text.units import Unit

if TYPE_CHECKING:
    from spscanner_rag.encoder.meaning import Meaning

T = TypeVar("T")

Prompt = Callable[[str, list[Any]], str]
"""Makes the text for a language model from a question and its results."""

SENT_SEPARATOR = "\n\n"  # what frameworks write between two results
BUDGETS_TRIED = 10  # budgets for the text alone, until what is sent fits `max_tokens`

AT_ONCE = max(1, min(4, (os.cpu_count() or 1) // 2))
"""Maximum number of concurrent scans.

Each already uses several cores; further ones wait in a queue.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection(results.Selection):
    """The selection of a search: over all texts together, best first unless ``order`` is "document"."""

    order: Order = "score"
    require_answer: float | None = None
    """Minimum probability that a text answers the question; nothing is selected from
    other texts."""

    def __post_init__(self) -> None:
        results.Selection.__post_init__(self)
        least = self.require_answer
        if least is not None and not (type(least) in (int, float) and 0 <= least <= 1):
            raise ValueError(
                f"require_answer: got {least!r}; expected a probability from 0 to 1, or"
                " None"
            )


@dataclass(frozen=True)
class Scored:
    """Texts with the scores of their sentences, from which hits are selected."""

    texts: Sequence[JoinedText]
    scanned: Sequence[ScanResult]
    best: Sequence[float]  # for each text, the score of its best sentence
    answerable: Sequence[float | None]  # for each text, the probability that it answers

    @cached_property
    def _together(self) -> Together:
        return Together(self.scanned)

    def hits(self, choose: Selection) -> list[Hit]:
        """The passages of a selection."""
        hits = []
        for number, passage in self._together.select(choose) if self.texts else ():
            start, end, own = passage.start, passage.end, self.scanned[number]
            logit = float(
                own.logits[slice(*np.searchsorted(own.starts, (start, end)))].max()
            )
            place = self.texts[number].place(start, end)
            of_text = self.best[number], self.answerable[number]
            hits.append(
                Hit(
                    passage.text,
                    passage.score,
                    logit,
                    number,
                    place,
                    start,
                    end,
                    *of_text,
                )
            )
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

    The texts are one collection, or ``collection`` has the words of a larger one.
    Sentences that overlap no piece are scored but not selected, nor are those of texts
    below ``require_answer``. Raises ``ValueError`` if that is given and the scorer does
    not report the probability that a text answers.
    """
    count_tokens = choose.count_tokens
    if count_tokens is None:
        count_tokens = getattr(scorer, "count_tokens", None)
    counter = budget_counter(choose.max_tokens, count_tokens, type(scorer).__name__)
    if choose.require_answer is not None and not getattr(scorer, "says_answers", False):
        raise ValueError(
            f"require_answer: {type(scorer).__name__} does not report whether a text"
            " answers; expected a scanner with its own encoder, such as the bundled"
            " one: use that, or threshold= instead"
        )

    def cut_before(number: int) -> list[Unit]:
        stop_if(cancelled, f"before text {number + 1} of {len(texts)}")
        return cut(scorer, texts[number])

    counted: list[list[Unit]] = []
    if (
        collection is None
        and len(texts) > 1
        and getattr(scorer, "uses_collection", False)
    ):
        counted = [cut_before(number) for number in range(len(texts))]
        collection = words_together(scorer, counted, cancelled)
    scanned: list[ScanResult] = []
    best: list[float] = []  # for each text, the score of its best sentence
    answerable: list[
        float | None
    ] = []  # for each text, the probability that it answers
    for first in range(0, len(texts), batch_size):
        batch = range(first, min(first + batch_size, len(texts)))
        cuts = [counted[i] if counted else cut_before(i) for i in batch]
        requests = [
            (query, texts[number].text, units)
            for number, units in zip(batch, cuts, strict=True)
        ]
        scored = score_batch(scorer, requests, cancelled, collection, answerable)
        for number, units, logits in zip(batch, cuts, scored, strict=True):
            answers = (
                choose.require_answer is None
                or (answerable[-1] or 0.0) >= choose.require_answer
            )
            scanned.append(
                _scanned(
                    query, texts[number], units if answers else [], logits, counter
                )
            )
            best.append(float(sigmoid(logits.max(initial=-np.inf))))
    return Scored(texts, scanned, best, answerable)


def _scanned(
    query: str,
    joined: JoinedText,
    units: Sequence[Unit],
    logits: NDArray[np.float32],
    count_tokens: CountTokens | None,
) -> ScanResult:
    """The sentences that overlap a piece.

    Those of one block are neighbours, with none left out between them.
    """
    kept = np.array(
        [i for i, unit in enumerate(units) if joined.touches(unit.start, unit.end)],
        np.int64,
    )
    starts = np.array([units[i].start for i in kept], np.int64)
    ends = np.array([units[i].end for i in kept], np.int64)
    apart = (np.diff(kept) > 1) | (
        np.diff(np.searchsorted(joined.blocks, starts, "right")) > 0
    )
    blocks = np.concatenate([[0], np.cumsum(apart)])[: len(kept)]
    return ScanResult(
        query, joined.text, starts, ends, logits[kept], count_tokens, blocks
    )


@dataclass(frozen=True)
class SentenceSearch:
    """One search with the checked options of a framework class.

    Deep copies share its scanner and first stage.
    """

    choice: ScorerChoice
    selection: Selection
    batch_size: int
    return_nodes: ReturnNodes
    keep_retrieval_score: bool
    prompt: Prompt | None
    first_stage: object = (
        "none"  # for `answer_from`: "bm25", "none" or a retriever of the framework
    )
    bounds: ReadBounds = field(default_factory=ReadBounds)

    def meaning(self) -> "Meaning | None":
        """Load the scorer and return its `Meaning`, or None if it has none."""
        return getattr(self.choice.resolve(), "meaning", None)

    def answer_from(
        self,
        held: HeldCorpus[Item],
        query: str,
        made: Callable[[bool], Answer[Item, Result]],
        admits: Callable[[Item], bool] | None = None,
        found: object = None,
        cancelled: Cancelled = never,
    ) -> list[Result]:
        """`answer` from the texts that `HeldCorpus.read` chooses, with scores relative to all held texts."""
        bounds = self.bounds.on(self.choice)
        texts = held.read(
            query, self.first_stage, bounds, admits, found, self.meaning, cancelled
        )
        return self.answer(query, texts, made, cancelled, held.counted()[1].collection)

    def answer(
        self,
        query: str,
        texts: Sequence[ReadText[Item]],
        made: Callable[[bool], Answer[Item, Result]],
        cancelled: Cancelled = never,
        collection: CollectionIndex | None = None,
    ) -> list[Result]:
        """The best sentences of all texts together, or their pieces, as objects made by a framework's `Answer`."""
        joined = [text.joined for text in texts]
        if not any(each.text.strip() for each in joined):
            return []  # without loading a scorer
        scored = score(
            self.choice.resolve(),
            query,
            joined,
            self.selection,
            collection=collection,
            batch_size=self.batch_size,
            cancelled=cancelled,
        )
        chosen = partial(self._chosen, made, scored, texts)
        answer = chosen(self.selection)
        if self.selection.max_tokens is not None and self.return_nodes != "node":
            answer = self._within_budget(query, answer, chosen)
        return answer.found

    def _chosen(
        self,
        made: Callable[[bool], Answer[Item, Result]],
        scored: Scored,
        texts: Sequence[ReadText[Item]],
        selection: Selection,
    ) -> Answer[Item, Result]:
        """Make an answer from what is selected."""
        answer = made(self.keep_retrieval_score)
        if self.return_nodes == "sentence":
            for hit in scored.hits(selection):
                answer.add_sentence(hit, texts[hit.joined])
            return answer
        pruned = self.return_nodes == "pruned"
        kept = kept_pieces(scored.texts, scored.hits(replace(selection, merge=False)))
        if pruned:
            kept = [piece for piece in kept if piece.spans]
        if selection.order == "score":
            kept.sort(key=lambda piece: -piece.best.logit)
        count = self.token_counter() if kept and pruned else None
        for own in kept:
            text, saved = texts[own.joined], dict[str, float]()
            content = whole = answer.content(text.items[own.piece])
            if pruned:
                content = pruned_text(whole, text.joined, own)
                saved = reduction_metadata(whole, content, count)
            answer.add_piece(own.best, text, own.piece, content, saved)
        return answer

    def _within_budget(
        self,
        query: str,
        answer: Answer[Item, Result],
        chosen: Callable[[Selection], Answer[Item, Result]],
    ) -> Answer[Item, Result]:
        """The answer, or a smaller one if its text and what is sent with it exceed the budget."""
        most, count = self.selection.max_tokens, self.token_counter()
        assert most is not None
        assert count is not None, "the fields ask for a counter"
        if self.prompt is None and all(
            answer.sent(each) == answer.content(each) for each in answer.found
        ):
            return answer
        counted = cache(count)  # most sentences are counted several times

        def tokens(of: Answer[Item, Result]) -> int:
            if self.prompt is not None:
                return count(self.prompt(query, list(of.found)))
            return sum(counted(of.sent(result) + SENT_SEPARATOR) for result in of.found)

        if tokens(answer) <= most:
            return answer
        fits, low, high = None, 0, most
        for _ in range(BUDGETS_TRIED):
            budget = (low + high) // 2
            if budget == low:
                break
            tried = chosen(
                replace(self.selection, max_tokens=budget, count_tokens=counted)
            )
            if tokens(tried) <= most:
                fits, low = tried, budget
            else:
                high = budget
        if fits is not None:
            return fits
        answer.found.clear()
        if (alone := tokens(answer)) > most:
            raise ValueError(
                f"max_tokens: got {most}, but the prompt has {alone} without results;"
                " expected more, or a shorter question"
            )
        return answer

    async def off_loop(self, call: Callable[[Cancelled], T]) -> T:
        """`off_loop` with `AT_ONCE` calls at a time, or as many as a scorer that asks a server allows."""
        return await off_loop(
            call, int(getattr(self.choice.scorer, "calls_at_once", AT_ONCE))
        )

    def token_counter(self) -> Callable[[str], int] | None:
        """The token counter of the budget.

        None if the scorer has none and no other was given.
        """
        count_tokens = self.selection.count_tokens
        if count_tokens is None:
            return getattr(self.choice.resolve(), "count_tokens", None)
        return resolve_counter(count_tokens)

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self  # immutable, and a scanner should not be in memory twice


async def off_loop(call: Callable[[Cancelled], T], at_once: int = AT_ONCE) -> T:
    """Await a blocking call in one of ``at_once`` worker threads, with the caller's context variables.

    The call gets a function, to be called regularly, that returns True after the
    awaiting task was cancelled.
    """
    stop = threading.Event()
    context = contextvars.copy_context()
    threads = _threads(at_once, os.getpid())
    waiting = asyncio.get_running_loop().run_in_executor(
        threads, context.run, call, stop.is_set
    )
    try:
        return await waiting
    finally:
        stop.set()


@cache
def _threads(at_once: int, process: int) -> ThreadPoolExecutor:
    """The threads of this process.

    A forked process has none of its parent's threads and gets new ones.
    """
    return ThreadPoolExecutor(at_once, thread_name_prefix="spscanner")
