"""Training examples from documents: a question, a stretch of its document and a label for every sentence."""

import random
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lab.training.data.document_store import DocumentStore
from spscanner_rag.lab.training.data.example import Example, Labelled
from spscanner_rag.lab.training.data.groups import GroupDraw
from spscanner_rag.lab.training.data.other_words import OtherWords
from spscanner_rag.lab.training.data.prepared_texts import PreparedTexts
from spscanner_rag.lab.training.data.question_draw import Drawn, QuestionDraw
from spscanner_rag.lab.training.data.source_collections import SourceCollections
from spscanner_rag.lab.training.data.stretches import full_stretch, room_for, spread_stretch
from spscanner_rag.lab.training.data.teacher import TeacherScores
from spscanner_rag.lab.training.data.wrong_entity import with_wrong_entity
from spscanner_rag.lab.training.data.wrong_favourite import bm25_scores, wrong_favourite
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.lexical.match import LexicalStatistics
from spscanner_rag.results.coverage import relevant_units
from spscanner_rag.scan.prepare import PreparedText, Reading

MAX_DRAWS = 1000
"""Most draws for one example: a drawn question may be too long for the sequence or have no relevant unit."""


class ExampleSource:
    """An endless, repeatable supply of training examples.

    Example number n is the same in every run with the same documents, reading and recipe, so that a resumed
    run continues as if it had never stopped. ``pseudo_sources`` are the sources of plain text, whose weights the
    recipe's ``pseudo_weight`` multiplies.

    Raises
    ------
    ValueError
        If no document has a usable question, or the recipe names a source that the documents do not have.
    """

    def __init__(
        self,
        documents: DocumentStore,
        reading: Reading,
        recipe: Recipe,
        teacher: TeacherScores | None = None,
        pseudo_sources: Collection[str] = (),
    ) -> None:
        self.reading, self.recipe, self.teacher = reading, recipe, teacher
        self._documents = documents
        self._collections: SourceCollections | None = None
        if recipe.group_share or recipe.collection_share or recipe.unanswerable_near_share:
            sources = {documents.without_text(number).source for number in range(len(documents))}
            self._collections = SourceCollections(documents, reading, sources)
        self._draw = QuestionDraw(documents, recipe, pseudo_sources, self._collections)
        self.questions_by_source = self._draw.questions_by_source  # only those with usable evidence
        vectors, other = reading.match_options.vectors, recipe.other_words_share
        self._other_words = OtherWords(vectors, other) if vectors is not None and other else None
        self._texts = PreparedTexts(documents, reading)
        self._taught = _taught(documents, recipe) if teacher is not None else frozenset()
        self._groups: GroupDraw | None = None
        if recipe.group_share:
            assert self._collections is not None
            comparable = partial(self._in_other_words, self._draw.comparable)
            self._groups = GroupDraw(documents, reading, recipe, comparable, self._collections)

    def example(self, number: int, length: int) -> Example:
        """Example ``number``, about ``length`` tokens long, or a group, whose length is the recipe's."""
        recipe, draw = self.recipe, random.Random(f"{self.recipe.seed}-{number}")
        if self._groups is not None and draw.random() < recipe.group_share:
            for _ in range(MAX_DRAWS):
                group = self._groups.group(draw)
                if group is not None:
                    return group
            raise ValueError(f"none of {MAX_DRAWS} drawn questions makes a group; raise group_tokens")
        share = recipe.unanswerable_share
        answered = not share or draw.random() >= share
        for _ in range(MAX_DRAWS):
            drawn = self._in_other_words(self._draw.answered, draw) if answered else self._unanswered(draw)
            example = None if drawn is None else self._cut(drawn, length, draw)
            if example is not None:
                return example
        raise ValueError(
            f"none of {MAX_DRAWS} drawn questions fits a sequence of {length} tokens; raise sequence_tokens"
        )

    def _unanswered(self, draw: random.Random) -> Drawn | None:
        share = self.recipe.unanswerable_entity_share
        if not share or draw.random() >= share:
            return self._draw.unanswered(draw)
        return self._draw.to_change(draw)

    def _in_other_words(self, drawing: Callable[[random.Random], Drawn], draw: random.Random) -> Drawn:
        drawn = drawing(draw)
        return drawn if self._other_words is None else self._other_words.drawn(drawn, draw)

    def _cut(self, drawn: Drawn, length: int, draw: random.Random) -> Example | None:
        text, prepared = self._texts.get(drawn.document)
        if not prepared.units:
            return None
        wanted = np.zeros(len(prepared.units), bool)
        if drawn.answered or drawn.to_change:
            wanted = relevant_units(prepared.starts, prepared.ends, drawn.question.evidence)
        if drawn.to_change:
            question = with_wrong_entity(drawn.question.text, text, prepared.units, wanted, draw)
            if question is None:
                return None
            drawn = replace(drawn, question=replace(drawn.question, text=question))
        asked = self.reading.pair(drawn.question.text, prepared, self._statistics(drawn, draw))
        room = room_for(len(asked.question_ids), length, self.reading.reanchor_tokens)
        if (drawn.answered and not wanted.any()) or room < length // 4:
            return None
        centre = self._centre(drawn, prepared, wanted, draw)
        relevant = wanted & drawn.answered
        spread = self.recipe.spread_share
        cut = spread_stretch if spread and draw.random() < spread else full_stretch
        labelled = Labelled(asked, relevant, self._teacher_scores(drawn, text, prepared))
        example = labelled.cut(*cut(prepared.unit_ends, centre, room, draw))
        # a single unit can be far longer than the sequence
        return example if len(example.sequence.input_ids) <= 2 * length else None

    def _statistics(self, drawn: Drawn, draw: random.Random) -> LexicalStatistics | None:
        """In ``collection_share`` of the cases, those of several documents of the source; else None."""
        share = self.recipe.collection_share
        if not share or draw.random() >= share:
            return None
        assert self._collections is not None
        asked = self._collections.ask(drawn.document, drawn.question.text)
        return asked.statistics(asked.some([drawn.document], draw))

    def _centre(
        self, drawn: Drawn, prepared: PreparedText, wanted: NDArray[np.bool_], draw: random.Random
    ) -> int:
        """The unit around which the document is cut, mostly one that is ``wanted``, (units,)."""
        hard = self.recipe.hard_place_share
        if hard and draw.random() < hard:
            scores = bm25_scores(prepared.words, drawn.question.text)
            unit = wrong_favourite(scores, ~wanted & (scores > 0), draw)
            if unit is not None:
                return unit
        if not wanted.any() or draw.random() < self.recipe.random_place_share:
            return draw.randrange(len(prepared.units))
        return int(draw.choice(np.flatnonzero(wanted)))

    def _teacher_scores(self, drawn: Drawn, text: str, prepared: PreparedText) -> NDArray[np.float32] | None:
        """The teacher's scores if the question is the document's own: (units,)."""
        if self.teacher is None or drawn.place is None or drawn.document not in self._taught:
            return None
        document = replace(self._documents.without_text(drawn.document), text=text)
        return self.teacher.of_question(document, prepared.units, drawn.place)


def _taught(documents: DocumentStore, recipe: Recipe) -> frozenset[int]:
    """Numbers of the documents that get teacher scores: the first ``teacher_documents`` of each source."""
    most = recipe.teacher_documents or len(documents)
    seen: Counter[str] = Counter()
    taught = set()
    for number in range(len(documents)):
        source = documents.without_text(number).source
        seen[source] += 1
        if seen[source] <= most:
            taught.add(number)
    return frozenset(taught)
