"""Examples for a scanner: stretches of documents with labelled sentences."""

import random
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_lab.training.data.document_store import DocumentStore
from spscanner_lab.training.data.question_draw import MAX_DRAWS, Drawn, QuestionDraw
from spscanner_lab.training.recipe import Recipe
from spscanner_rag.mamba2.token_sequences import TokenSequence
from spscanner_rag.results.coverage import relevant_units
from spscanner_rag.scan.reading import Reading

KEPT_BYTES = 20_000_000  # of text kept prepared in memory, which takes about 300 MB


class Example(NamedTuple):
    """One training sequence, and which of its units are relevant."""

    sequence: TokenSequence
    relevant: NDArray[np.bool_]  # (units,)


class ExampleSource(QuestionDraw):
    """An endless, repeatable supply of training examples.

    Example number n is the same in every run with the same documents, reading and
    recipe, so that a resumed run continues as if it had never stopped.
    """

    def __init__(
        self, documents: DocumentStore, reading: Reading, recipe: Recipe
    ) -> None:
        super().__init__(documents, recipe)
        self.reading = reading
        # as many as have `KEPT_BYTES` on average, since every document is drawn
        prepared_documents = KEPT_BYTES * len(documents) // max(1, documents.bytes)
        self._prepared = lru_cache(max(1, prepared_documents))(
            lambda number: reading.index_text(documents.document(number).text)
        )

    def example(self, number: int, length: int) -> Example:
        """Example ``number``, about ``length`` tokens long."""
        draw = random.Random(f"{self.recipe.seed}-{number}")
        share = self.recipe.unanswerable_share
        answered = not share or draw.random() >= share
        for _ in range(MAX_DRAWS):
            drawn = self.answered(draw, number) if answered else self.unanswered(draw)
            if drawn is None:
                continue
            example = self._cut(drawn, length, draw)
            if example is not None:
                return example
        raise ValueError(
            f"none of {MAX_DRAWS} drawn questions fits a sequence of {length} tokens;"
            " raise sequence_tokens"
        )

    def _cut(self, drawn: Drawn, length: int, draw: random.Random) -> Example | None:
        """A stretch of the drawn document, or None if it cannot be an example."""
        prepared = self._prepared(drawn.document)
        if not prepared.units:
            return None
        relevant = np.zeros(len(prepared.units), bool)
        if drawn.answered:
            relevant = relevant_units(
                prepared.starts, prepared.ends, drawn.question.evidence
            )
        pair = self.reading.pair(drawn.question.text, prepared)
        room = self._room(length, len(pair.question_ids))
        if (drawn.answered and not relevant.any()) or room < length // 4:
            return None
        if relevant.any() and draw.random() >= self.recipe.random_place_share:
            centre = int(draw.choice(np.flatnonzero(relevant)))
        else:
            centre = draw.randrange(len(prepared.units))
        first, last = full_stretch(prepared.unit_ends, centre, room, draw)
        sequence = pair.sequence(first, last)
        # a single unit can be far longer than the sequence
        if len(sequence.input_ids) > 2 * length:
            return None
        return Example(sequence, relevant[first : last + 1])

    def _room(self, length: int, question_tokens: int) -> int:
        """Tokens for the document, beside the question and its repeats."""
        reanchor_tokens = self.reading.settings.reanchor_tokens
        repeats = 0.0  # for each token of the document
        if reanchor_tokens:
            repeats = question_tokens / reanchor_tokens
        return int((length - question_tokens) / (1 + repeats))


def full_stretch(
    unit_ends: NDArray[np.int64], centre: int, room: int, draw: random.Random
) -> tuple[int, int]:
    """First and last unit of a stretch of ``room`` tokens around unit ``centre``.

    A shorter document is a stretch as it is.

    The unit may be anywhere in the stretch if the document is long enough on both
    sides. A unit near the start or end of the document is usually as near to that of
    the stretch. ``unit_ends``, (units,), has each unit's last token.
    """
    total = int(unit_ends[-1]) + 1
    before = int(unit_ends[centre - 1]) + 1 if centre else 0
    begin = min(max(0, before - draw.randrange(room)), max(0, total - room))
    first = int(np.searchsorted(unit_ends, begin))
    last = int(np.searchsorted(unit_ends, begin + room, side="right")) - 1
    return min(first, centre), max(min(last, len(unit_ends) - 1), centre)
