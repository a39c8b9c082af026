"""One search, with the options that all framework classes take (`scan_fields`)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Self

from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.retrieval.answers import (
    Answer,
    Result,
    ReturnNodes,
    kept_pieces,
    pruned_text,
    reduction_metadata,
)
from spscanner_rag.retrieval.background import AT_ONCE
from spscanner_rag.retrieval.held import HeldCorpus, Item, ReadBounds, ReadText
from spscanner_rag.retrieval.search import Scored, Selection, score
from spscanner_rag.retrieval.shared_scanners import ScorerChoice
from spscanner_rag.scorers import Cancelled, never
from spscanner_rag.text.token_counts import resolve_counter

if TYPE_CHECKING:
    from spscanner_rag.encoder.meaning import Meaning

Prompt = Callable[[str, list[Any]], str]
"""What a language model gets of a question and its results."""

SENT_SEPARATOR = "\n\n"  # what frameworks write between two results
BUDGETS_TRIED = 10  # of text alone, until what is sent fits `max_tokens`


@dataclass(frozen=True)
class SentenceSearch:
    """One search with the checked options of a framework class. Deep copies share its scanner."""

    choice: ScorerChoice
    selection: Selection
    batch_size: int
    return_nodes: ReturnNodes
    keep_retrieval_score: bool
    prompt: Prompt | None
    collection: CollectionIndex | None = None

    def meaning(self) -> "Meaning | None":
        """The scorer's `Meaning`, if it has one; loads the scorer."""
        return getattr(self.choice.resolve(), "meaning", None)

    def answer_from(
        self,
        held: HeldCorpus[Item],
        query: str,
        first_stage: object,
        bounds: ReadBounds,
        made: Callable[[bool], Answer[Item, Result]],
        admits: Callable[[Item], bool] | None = None,
        found: object = None,
        cancelled: Cancelled = never,
    ) -> list[Result]:
        """`answer` from the texts that `HeldCorpus.read` chooses, with scores relative to all that are held."""
        bounds = bounds.on(self.choice)
        texts = held.read(query, first_stage, bounds, admits, found, self.meaning, cancelled)
        own = replace(self, collection=held.counted()[1].collection)
        return own.answer(query, texts, made, cancelled)

    def answer(
        self,
        query: str,
        texts: Sequence[ReadText[Item]],
        made: Callable[[bool], Answer[Item, Result]],
        cancelled: Cancelled = never,
    ) -> list[Result]:
        """The best sentences of all texts together, or their pieces, as the objects of a framework's `Answer`."""
        joined = [text.joined for text in texts]
        if not any(each.text.strip() for each in joined):
            return []  # and no scorer is loaded
        scored = score(
            self.choice.resolve(),
            query,
            joined,
            self.selection,
            collection=self.collection,
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
        """An answer of what is selected."""
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
            text, cut_down = texts[own.joined], None
            if pruned:
                whole = answer.content(text.items[own.piece])
                content = pruned_text(whole, text.joined, own)
                cut_down = content, reduction_metadata(whole, content, count)
            answer.add_piece(own.best, text, own.piece, cut_down)
        return answer

    def _within_budget(
        self, query: str, answer: Answer[Item, Result], chosen: Callable[[Selection], Answer[Item, Result]]
    ) -> Answer[Item, Result]:
        """The answer, or a smaller one where what is sent beside its text exceeds the budget."""
        most, count = self.selection.max_tokens, self.token_counter()
        assert most is not None
        assert count is not None, "the fields ask for a counter"
        if self.prompt is None and all(answer.sent(each) == answer.content(each) for each in answer.found):
            return answer
        counted = cache(count)  # most sentences come again

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
            tried = chosen(replace(self.selection, max_tokens=budget, count_tokens=counted))
            if tokens(tried) <= most:
                fits, low = tried, budget
            else:
                high = budget
        if fits is not None:
            return fits
        answer.found.clear()
        if (alone := tokens(answer)) > most:
            raise ValueError(
                f"max_tokens: got {most}, but the prompt has {alone} without results; expected more, or a "
                "shorter question"
            )
        return answer

    @property
    def at_once(self) -> int:
        """How many searches may run at a time: few here, and as many as a scorer that asks a server says."""
        return int(getattr(self.choice.scorer, "calls_at_once", AT_ONCE))

    def token_counter(self) -> Callable[[str], int] | None:
        """What counts tokens for the budget; None if the scorer counts none and no other counter was given."""
        count_tokens = self.selection.count_tokens
        if count_tokens is None:
            return getattr(self.choice.resolve(), "count_tokens", None)
        return resolve_counter(count_tokens)

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self  # immutable, and a scanner should not be in memory twice
