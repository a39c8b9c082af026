"""Training examples from documents: a question, a stretch of its document and a label for every sentence."""

import random
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lab.training.data.documents import DocumentStore
from spscanner_rag.lab.training.data.questions import Drawn, QuestionDraw
from spscanner_rag.lab.training.data.stretches import Example, full_stretch, room_for
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.results.coverage import relevant_units
from spscanner_rag.scan.prepare import PreparedText, Reading

MAX_DRAWS = 1000
"""Most draws for one example: a drawn question may be too long for the sequence or have no relevant unit."""

KEPT_BYTES = 20_000_000
"""Of the texts in memory, which take about 300 MB when they are prepared."""


class ExampleSource:
    """An endless, repeatable supply of training examples.

    Example number n is the same in every run with the same documents, reading and recipe, so that a resumed run
    continues as if it had never stopped.
    """

    def __init__(self, documents: DocumentStore, reading: Reading, recipe: Recipe) -> None:
        self.reading, self.recipe = reading, recipe
        self._draw = QuestionDraw(documents, recipe)
        self.questions_by_source = self._draw.questions_by_source  # only those with usable evidence
        # as many as have `KEPT_BYTES` on the average, since all are drawn
        most = max(1, KEPT_BYTES * len(documents) // max(1, documents.bytes))
        self._prepared = lru_cache(most)(lambda number: reading.prepare(documents.document(number).text))

    def example(self, number: int, length: int) -> Example:
        """Example ``number``, about ``length`` tokens long."""
        draw, share = random.Random(f"{self.recipe.seed}-{number}"), self.recipe.unanswerable_share
        answered = not share or draw.random() >= share
        for _ in range(MAX_DRAWS):
            drawn = self._draw.answered(draw) if answered else self._draw.unanswered(draw)
            example = None if drawn is None else self._cut(drawn, length, draw)
            if example is not None:
                return example
        raise ValueError(
            f"none of {MAX_DRAWS} drawn questions fits a sequence of {length} tokens; raise sequence_tokens"
        )

    def _cut(self, drawn: Drawn, length: int, draw: random.Random) -> Example | None:
        prepared = self._prepared(drawn.document)
        if not prepared.units:
            return None
        wanted = np.zeros(len(prepared.units), bool)
        if drawn.answered:
            wanted = relevant_units(prepared.starts, prepared.ends, drawn.question.evidence)
        asked = self.reading.pair(drawn.question.text, prepared)
        room = room_for(len(asked.question_ids), length, self.reading.reanchor_tokens)
        if (drawn.answered and not wanted.any()) or room < length // 4:
            return None
        centre = self._centre(prepared, wanted, draw)
        first, last = full_stretch(prepared.unit_ends, centre, room, draw)
        sequence = asked.sequence(first, last)
        # a single unit can be far longer than the sequence
        return Example(sequence, wanted[first : last + 1]) if len(sequence.input_ids) <= 2 * length else None

    def _centre(self, prepared: PreparedText, wanted: NDArray[np.bool_], draw: random.Random) -> int:
        """The unit around which the document is cut, mostly one that is ``wanted``, (units,)."""
        if not wanted.any() or draw.random() < self.recipe.random_place_share:
            return draw.randrange(len(prepared.units))
        return int(draw.choice(np.flatnonzero(wanted)))
