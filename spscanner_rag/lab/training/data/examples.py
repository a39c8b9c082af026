"""Training examples from documents: a question, a stretch of its document and a label for every sentence."""

import random
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lab.training.data.documents import DocumentStore
from spscanner_rag.lab.training.data.questions import Drawn, QuestionDraw
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.mamba2.reader import TokenSequence
from spscanner_rag.results.coverage import relevant_units
from spscanner_rag.scan.prepare import PreparedText, Reading

MAX_DRAWS = 1000
"""Most draws for one example: a drawn question may be too long for the sequence or have no relevant unit."""

KEPT_BYTES = 20_000_000
"""Of the texts in memory, which take about 300 MB when they are prepared."""


@dataclass(frozen=True, slots=True)
class Example:
    """One training sequence, and which of its units are relevant."""

    sequence: TokenSequence
    relevant: NDArray[np.bool_]  # (units,)


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
        question, reanchor = len(asked.question_ids), self.reading.reanchor_tokens
        # of the document, beside the question and its repeats
        room = int((length - question) / (1 + (question / reanchor if reanchor else 0)))
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


def full_stretch(
    unit_ends: NDArray[np.int64], centre: int, room: int, draw: random.Random
) -> tuple[int, int]:
    """First and last unit of a stretch around unit ``centre``: ``room`` tokens, or a shorter document whole.

    The unit is anywhere in the stretch if the document is long enough on both sides. A unit near the document's
    start or end is usually as near to that of the stretch. ``unit_ends``, (units,), has the last token of each.
    """
    total, before = int(unit_ends[-1]) + 1, int(unit_ends[centre - 1]) + 1 if centre else 0
    begin = min(max(0, before - draw.randrange(room)), max(0, total - room))
    first = int(np.searchsorted(unit_ends, begin))
    last = int(np.searchsorted(unit_ends, begin + room, side="right")) - 1
    return min(first, centre), max(min(last, len(unit_ends) - 1), centre)
