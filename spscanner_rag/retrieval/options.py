"""Check the options that all framework classes take, and make one search of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Self, get_args

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
from spscanner_rag.retrieval.corpus import Corpus
from spscanner_rag.retrieval.held import Item, ReadText
from spscanner_rag.retrieval.search import Scored, Selection, score
from spscanner_rag.retrieval.shared_scanners import ScorerChoice
from spscanner_rag.scorers import Cancelled, never
from spscanner_rag.text.token_counts import budget_counter, resolve_counter

if TYPE_CHECKING:
    from spscanner_rag.encoder.meaning import Meaning

Prompt = Callable[[str, list[Any]], str]
"""What a language model gets of a question and its results."""

SENT_SEPARATOR = "\n\n"  # what frameworks write between two results
BUDGETS_TRIED = 10  # of text alone, until what is sent fits `max_tokens`


@dataclass(frozen=True)
class SentenceSearch:
    """One search with the options of a framework class. A pickle stores how to load a scanner; copies share it."""

    choice: ScorerChoice
    selection: Selection
    batch_size: int = 64
    return_nodes: ReturnNodes = "sentence"
    keep_retrieval_score: bool = False
    keep_compression: bool = False
    prompt: Prompt | None = None
    collection: CollectionIndex | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any], *, top_k: str, top_k_per_text: str) -> Self:
        """Check the options of a framework class, and load nothing.

        They are, by name, the fields of `ScorerChoice`, of `Selection` (``context`` as ``context_sentences``,
        ``merge`` as ``merge_adjacent``, and the other two as given here), and of this class. ``ValueError`` for
        one out of range, several scorers, or a missing token counter, ``TypeError`` for what cannot score.
        """
        batch_size = options["batch_size"]
        if type(batch_size) is not int or batch_size < 1:
            raise ValueError(f"batch_size: got {batch_size!r}; expected an integer of at least 1")
        choice = ScorerChoice.of(options)
        names = {"context": "context_sentences", "merge": "merge_adjacent"}
        selection = Selection.of(options, names | {"top_k": top_k, "top_k_per_text": top_k_per_text})
        scorer, keep_compression = choice.scorer, options["keep_compression"]
        if (
            scorer is not None
            and selection.count_tokens is None
            and getattr(scorer, "count_tokens", None) is None
        ):
            budget_counter(selection.max_tokens, None, type(scorer).__name__)
            if keep_compression:
                raise ValueError(
                    f"keep_compression: got True, but {type(scorer).__name__} counts no tokens; expected "
                    'count_tokens as well, for example count_tokens="o200k_base"'
                )
        return_nodes, known = options["return_nodes"], get_args(ReturnNodes)
        if return_nodes not in known:
            raise ValueError(f"return_nodes: got {return_nodes!r}; expected one of {', '.join(known)}")
        prompt = options.get("prompt")
        if prompt is not None and not callable(prompt):
            raise ValueError(
                f"prompt: got {type(prompt).__name__}; expected a function of the question and the results"
            )
        rest = options["keep_retrieval_score"], keep_compression, prompt
        return cls(choice, selection, batch_size, return_nodes, *rest)

    def meaning(self) -> "Meaning | None":
        """The scorer's `Meaning`, if it has one; loads the scorer."""
        return getattr(self.choice.resolve(), "meaning", None)

    def within(self, corpus: Corpus) -> Self:
        """The same search with scores relative to all texts of a corpus, whichever are read."""
        return replace(self, collection=corpus.collection)

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

        def chosen(selection: Selection) -> Answer[Item, Result]:
            answer = made(self.keep_retrieval_score)
            self._add(answer, scored, texts, selection)
            return answer

        answer = chosen(self.selection)
        if self.selection.max_tokens is not None and self.return_nodes != "node":
            answer = self._within_budget(query, answer, chosen)
        if self.keep_compression and answer.found:
            count = self.token_counter()
            assert count is not None, "`of` asks for a counter"
            tokens = (
                sum(map(count, map(answer.content, answer.found))),
                sum(count(each.text) for each in joined),
            )
            for result in answer.found:
                answer.set_compression(result, *tokens)
        return answer.found

    def _add(
        self,
        answer: Answer[Item, Result],
        scored: Scored,
        texts: Sequence[ReadText[Item]],
        selection: Selection,
    ) -> None:
        """Add what is selected to an answer."""
        if self.return_nodes == "sentence":
            for hit in scored.hits(selection):
                answer.add_sentence(hit, texts[hit.joined])
            return
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

    def _within_budget(
        self,
        query: str,
        answer: Answer[Item, Result],
        chosen: Callable[[Selection], Answer[Item, Result]],
    ) -> Answer[Item, Result]:
        """The answer, or a smaller one where what is sent beside its text exceeds the budget."""
        most, count = self.selection.max_tokens, self.token_counter()
        assert most is not None
        assert count is not None, "`of` asks for a counter"
        if self.prompt is None and all(answer.sent(each) == answer.content(each) for each in answer.found):
            return answer
        counted = cache(count)  # most sentences come again

        def tokens(of: Answer[Item, Result]) -> int:
            if self.prompt is not None:
                return count(self._prompt(query, of.found))
            return sum(counted(of.sent(result) + SENT_SEPARATOR) for result in of.found)

        if (sent := tokens(answer)) <= most:
            return answer
        fits, too_many = None, most
        budget = most * sum(map(counted, map(answer.content, answer.found))) // sent
        for _ in range(BUDGETS_TRIED):
            budget = min(max(budget, 1), too_many - 1)
            if budget < 1 or (fits and budget <= fits[0]):
                break
            tried = chosen(replace(self.selection, max_tokens=budget, count_tokens=counted))
            if tokens(tried) <= most:
                fits = budget, tried
            else:
                too_many = budget
            budget = ((fits[0] if fits else 0) + too_many) // 2
        if fits:
            return fits[1]
        answer.found.clear()
        if (alone := tokens(answer)) > most:
            raise ValueError(
                f"max_tokens: got {most}, but the prompt has {alone} without results; expected more, or a "
                "shorter question"
            )
        return answer

    def _prompt(self, query: str, found: list[Result]) -> str:
        assert self.prompt is not None
        made: object = self.prompt(query, list(found))
        if not isinstance(made, str):
            raise TypeError(f"prompt: returned {type(made).__name__}; expected the text that is sent")
        return made

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

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        options = self.return_nodes, self.keep_retrieval_score, self.keep_compression, self.prompt
        return type(self), (self.choice.without_weights(), self.selection, self.batch_size, *options)

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self  # immutable, and a scanner should not be in memory twice
