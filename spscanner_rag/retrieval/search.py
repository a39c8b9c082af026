"""One search: texts are scored for a query, and results made of the best sentences."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal, Self

from spscanner_rag.results import Selection
from spscanner_rag.retrieval.answers import Answer, Result
from spscanner_rag.retrieval.held_corpus import HeldCorpus
from spscanner_rag.retrieval.held_texts import HeldTexts
from spscanner_rag.retrieval.host import Item, ReadText
from spscanner_rag.retrieval.model_budget import ModelBudget, Prompt
from spscanner_rag.retrieval.prepared_texts import prepared_text
from spscanner_rag.retrieval.progress_bar import progress_bar
from spscanner_rag.retrieval.pruning import pruned_text, reduction_metadata
from spscanner_rag.retrieval.read_bounds import ReadBounds
from spscanner_rag.retrieval.scored_texts import ScoredTexts, score_texts
from spscanner_rag.retrieval.scorer_choice import ScorerChoice
from spscanner_rag.retrieval.selected_pieces import SelectedPiece, pieces_of_hits
from spscanner_rag.retrieval.worker_threads import AT_ONCE, T, off_loop
from spscanner_rag.scorers import Cancelled, never
from spscanner_rag.text.token_counts import CountTokens, resolve_counter

ReturnNodes = Literal["sentence", "node", "pruned"]
"""What a framework class returns: sentences, the pieces that contain them, or these
pieces pruned to them."""

NewAnswer = Callable[[bool], Answer[Item, Result]]
"""A framework's `Answer` class, which takes ``keep_retrieval_score``."""


@dataclass(frozen=True)
class SentenceSearch:
    """One search with the checked options of a framework class.

    Deep copies share its scanner and first stage.

    Parameters
    ----------
    choice : ScorerChoice
        What scores.
    selection : Selection
        Which sentences are selected.
    batch_size : int
        Number of texts that the scorer gets at a time.
    return_nodes : {"sentence", "node", "pruned"}
        What results are.
    keep_retrieval_score : bool
        Whether results have the score of an earlier stage.
    prompt : callable, optional
        Makes the text for a language model, which ``max_tokens`` then counts.
    first_stage : object
        For `answer_from`: "bm25", "none" or a retriever of the framework.
    bounds : ReadBounds
        For `answer_from`: how much is read.
    show_progress : bool, optional
        For `index` and `persist`: whether a bar is shown. None: on a terminal.
    """

    choice: ScorerChoice
    selection: Selection
    batch_size: int
    return_nodes: ReturnNodes
    keep_retrieval_score: bool
    prompt: Prompt | None
    first_stage: object = "none"
    bounds: ReadBounds = field(default_factory=ReadBounds)
    show_progress: bool | None = None

    def index(self, held: HeldCorpus[Item]) -> None:
        """Prepare the texts of a corpus if "bm25" chooses among them."""
        if self.first_stage != "bm25":
            return
        bounds = self.bounds.on(self.choice)
        with progress_bar(self.show_progress) as texts_done:
            held.index(bounds, self.choice.resolve, texts_done)

    def persist(self, held: HeldCorpus[Item], path: str | Path) -> None:
        """Write a corpus to a folder, with all that the scorer prepares of it."""
        with progress_bar(self.show_progress) as texts_done:
            held.persist(path, self.choice.resolve, texts_done)

    def answer_from(
        self,
        held: HeldCorpus[Item],
        query: str,
        new_answer: NewAnswer[Item, Result],
        admits: Callable[[Item], bool] | None = None,
        found_items: object = None,
        cancelled: Cancelled = never,
    ) -> list[Result]:
        """Answer from the texts of a corpus that are chosen for the query.

        Scores are relative to all texts of the corpus. ``admits`` and ``found_items``
        are as for `HeldCorpus.texts_to_read`, the others as for `answer`.
        """
        texts = held.texts_to_read(
            query,
            self.first_stage,
            self.bounds.on(self.choice),
            admits,
            found_items,
            self.choice.resolve,
            cancelled,
        )
        _, held_texts = held.counted()
        return self.answer(query, texts, new_answer, cancelled, held_texts)

    def answer(
        self,
        query: str,
        texts: Sequence[ReadText[Item]],
        new_answer: NewAnswer[Item, Result],
        cancelled: Cancelled = never,
        held_texts: HeldTexts | None = None,
    ) -> list[Result]:
        """Return the best sentences of all texts together, or their pieces.

        Parameters
        ----------
        query : str
            The query.
        texts : sequence of ReadText
            What is read. If they have no text, no scorer is loaded.
        new_answer : callable
            The framework's `Answer` class, which makes the results.
        cancelled : callable
            Ends the scan.
        held_texts : HeldTexts, optional
            The larger collection that the texts belong to, and what is prepared of it.
        """
        joined_texts = [text.joined for text in texts]
        if not any(joined.text.strip() for joined in joined_texts):
            return []
        collection = None
        prepare = prepared_text
        if held_texts is not None:
            collection = held_texts.collection
            prepare = held_texts.prepared
        scored = score_texts(
            self.choice.resolve(),
            query,
            joined_texts,
            self.selection,
            collection=collection,
            prepare=prepare,
            batch_size=self.batch_size,
            cancelled=cancelled,
        )
        answer_of = partial(self._answer_of, new_answer, scored, texts)
        answer = answer_of(self.selection)
        max_tokens = self.selection.max_tokens
        if max_tokens is None or self.return_nodes == "node":
            return answer.results
        count_tokens = self.token_counter()
        assert count_tokens is not None, "scoring asks for a counter"
        budget: ModelBudget[Item, Result] = ModelBudget(
            query, max_tokens, count_tokens, self.prompt
        )
        return budget.fit(answer, self.selection, answer_of).results

    def _answer_of(
        self,
        new_answer: NewAnswer[Item, Result],
        scored: ScoredTexts,
        texts: Sequence[ReadText[Item]],
        selection: Selection,
    ) -> Answer[Item, Result]:
        """Make an answer of what is selected."""
        answer = new_answer(self.keep_retrieval_score)
        if self.return_nodes == "sentence":
            for hit in scored.hits(selection):
                answer.add_sentence(hit, texts[hit.text_number])
            return answer
        pieces = self._selected_pieces(scored, selection)
        if self.return_nodes == "node":
            for piece in pieces:
                text = texts[piece.text_number]
                content = answer.content(text.items[piece.piece_number])
                answer.add_piece(piece.best, text, piece.piece_number, content, {})
        elif pieces:
            self._add_pruned(answer, texts, pieces)
        return answer

    def _selected_pieces(
        self, scored: ScoredTexts, selection: Selection
    ) -> list[SelectedPiece]:
        """The pieces of the selected sentences, in the order of the selection."""
        hits = scored.hits(replace(selection, merge=False))
        pieces = pieces_of_hits(scored.texts, hits)
        if self.return_nodes == "pruned":
            pieces = [piece for piece in pieces if piece.spans]
        return pieces

    def _add_pruned(
        self,
        answer: Answer[Item, Result],
        texts: Sequence[ReadText[Item]],
        pieces: Sequence[SelectedPiece],
    ) -> None:
        count_tokens = self.token_counter()
        for piece in pieces:
            text = texts[piece.text_number]
            content = answer.content(text.items[piece.piece_number])
            pruned = pruned_text(content, text.joined, piece)
            reductions = reduction_metadata(content, pruned, count_tokens)
            answer.add_piece(piece.best, text, piece.piece_number, pruned, reductions)

    def token_counter(self) -> CountTokens | None:
        """The token counter of the budget, None if the scorer has none either."""
        count_tokens = self.selection.count_tokens
        if count_tokens is None:
            return self.choice.resolve().count_tokens
        return resolve_counter(count_tokens)

    async def off_loop(self, call: Callable[[Cancelled], T]) -> T:
        """Await a blocking call in a worker thread.

        `AT_ONCE` calls run at a time, or as many as a scorer that asks a server allows.
        """
        at_once = None
        if self.choice.scorer is not None:
            at_once = self.choice.scorer.calls_at_once
        if at_once is None:
            at_once = AT_ONCE
        return await off_loop(call, at_once)

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self  # immutable, and a scanner should not be in memory twice
