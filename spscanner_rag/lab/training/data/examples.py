"""Training examples from documents: a question, a stretch of its document and a label for every sentence."""

import random
import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lab.training.data.documents import DocumentStore, PreparedTexts
from spscanner_rag.lab.training.data.groups import GroupDraw
from spscanner_rag.lab.training.data.questions import Drawn, QuestionDraw, bm25_scores, hard_negative
from spscanner_rag.lab.training.data.source_collections import SourceCollections
from spscanner_rag.lab.training.data.stretches import (
    Example,
    Labelled,
    full_stretch,
    room_for,
    spread_stretch,
)
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.lexical.match import LexicalStatistics
from spscanner_rag.lexical.word_vectors import WordVectors
from spscanner_rag.lexical.words import stems_of
from spscanner_rag.results.coverage import relevant_units
from spscanner_rag.scan.prepare import PreparedText, Reading
from spscanner_rag.text.languages import STOP_WORDS

MAX_DRAWS = 1000
"""Most draws for one example: a drawn question may be too long for the sequence or have no relevant unit."""


class ExampleSource:
    """An endless, repeatable supply of training examples.

    Example number n is the same in every run with the same documents, reading and recipe, so that a resumed run
    continues as if it had never stopped.
    """

    def __init__(self, documents: DocumentStore, reading: Reading, recipe: Recipe) -> None:
        self.reading, self.recipe = reading, recipe
        self._documents = documents
        self._collections: SourceCollections | None = None
        if recipe.group_share or recipe.collection_share or recipe.unanswerable_near_share:
            sources = {documents.without_text(number).source for number in range(len(documents))}
            self._collections = SourceCollections(documents, reading, sources)
        self._draw = QuestionDraw(documents, recipe, self._collections)
        self.questions_by_source = self._draw.questions_by_source  # only those with usable evidence
        vectors, other = reading.match_options.vectors, recipe.other_words_share
        self._other_words = OtherWords(vectors, other) if vectors is not None and other else None
        self._texts = PreparedTexts(documents, reading)
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
            drawn = (
                self._in_other_words(self._draw.answered, draw) if answered else self._draw.unanswered(draw)
            )
            example = None if drawn is None else self._cut(drawn, length, draw)
            if example is not None:
                return example
        raise ValueError(
            f"none of {MAX_DRAWS} drawn questions fits a sequence of {length} tokens; raise sequence_tokens"
        )

    def _in_other_words(self, drawing: Callable[[random.Random], Drawn], draw: random.Random) -> Drawn:
        drawn = drawing(draw)
        return drawn if self._other_words is None else self._other_words.drawn(drawn, draw)

    def _cut(self, drawn: Drawn, length: int, draw: random.Random) -> Example | None:
        prepared = self._texts.get(drawn.document)
        if not prepared.units:
            return None
        wanted = np.zeros(len(prepared.units), bool)
        if drawn.answered:
            wanted = relevant_units(prepared.starts, prepared.ends, drawn.question.evidence)
        asked = self.reading.pair(drawn.question.text, prepared, self._statistics(drawn, draw))
        room = room_for(len(asked.question_ids), length, self.reading.reanchor_tokens)
        if (drawn.answered and not wanted.any()) or room < length // 4:
            return None
        centre = self._centre(drawn, prepared, wanted, draw)
        spread = self.recipe.spread_share
        cut = spread_stretch if spread and draw.random() < spread else full_stretch
        example = Labelled(asked, wanted).cut(*cut(prepared.unit_ends, centre, room, draw))
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
            unit = hard_negative(scores, ~wanted & (scores > 0), draw)
            if unit is not None:
                return unit
        if not wanted.any() or draw.random() < self.recipe.random_place_share:
            return draw.randrange(len(prepared.units))
        return int(draw.choice(np.flatnonzero(wanted)))


LEAST_COSINE = 0.65  # words are exchanged only for words that are at least so near

MOST_CHOICES = 3
WORD_SHARE = 0.4  # the share of a question's words that are exchanged, where they can be

_WORD = re.compile(r"[^\W\d_]+")
_LEAST_LETTERS = 3
_SAME_START = 4  # letters; "building" is no other word for "built"


class OtherWords:
    """Exchanges words of a ``share`` of the questions for words of like meaning, by a table of word vectors.

    Names, numbers and stop words stay, since another name is another question.
    """

    def __init__(self, vectors: WordVectors, share: float) -> None:
        self._vectors, self._share = vectors, share
        self._all = vectors.of_rows(np.arange(len(vectors)))  # (words, dimensions)
        self.choices = lru_cache(maxsize=None)(self._choices)

    def drawn(self, drawn: Drawn, draw: random.Random) -> Drawn:
        """The drawn question, in ``share`` of the cases in other words."""
        if draw.random() >= self._share:
            return drawn
        return replace(drawn, question=replace(drawn.question, text=self.text(drawn.question.text, draw)))

    def text(self, question: str, draw: random.Random) -> str:
        """A question with `WORD_SHARE` of its words exchanged."""

        def other(found: re.Match[str]) -> str:
            word = found.group()
            choices = () if word != word.lower() else self.choices(word)
            return draw.choice(choices) if choices and draw.random() < WORD_SHARE else word

        return _WORD.sub(other, question)

    def _choices(self, word: str) -> tuple[str, ...]:
        """The nearest words that have neither the stem nor the beginning of this one."""
        (row,) = self._vectors.rows([word])
        if row < 0 or word in STOP_WORDS or len(word) < _LEAST_LETTERS:
            return ()
        cosines = self._all @ self._all[row]
        near = np.flatnonzero(cosines >= LEAST_COSINE)
        words = [self._vectors.words[n] for n in near[np.argsort(-cosines[near], kind="stable")]]
        words = [other for other in words if _WORD.fullmatch(other) and other not in STOP_WORDS]
        (stem,), stems = stems_of([word]), stems_of(words)
        kept = [
            other
            for other, own in zip(words, stems, strict=True)
            if own != stem and other[:_SAME_START] != word[:_SAME_START]
        ]
        return tuple(kept[:MOST_CHOICES])
