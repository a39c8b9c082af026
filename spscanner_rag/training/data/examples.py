"""Training examples from documents: a question, a stretch of its document and a label for every sentence."""

import random
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.evidence.coverage import relevant_units
from spscanner_rag.mamba2.reader import TokenSequence
from spscanner_rag.scan.prepare import QueryOnText, Reading
from spscanner_rag.text.tokenization import PreparedText
from spscanner_rag.training.data.document_store import DocumentStore
from spscanner_rag.training.data.prepared_texts import PreparedTexts
from spscanner_rag.training.data.question_draw import Drawn, QuestionDraw
from spscanner_rag.training.data.teacher import TeacherScores
from spscanner_rag.training.recipe import Recipe

MAX_DRAWS = 1000
"""Most draws for one example: a drawn question may be too long for the sequence or have no relevant unit."""

LEAST_STRETCH_SHARE = 0.5
"""Share of the room in a sequence that a stretch fills at least, if the document is long enough."""


@dataclass(frozen=True, slots=True)
class Example:
    """One training sequence."""

    sequence: TokenSequence
    relevant: NDArray[np.bool_]  # (units,)
    teacher: NDArray[np.float32] | None  # (units,): scores with a spread of about one


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
        self._draw = QuestionDraw(documents, recipe, pseudo_sources)
        self.questions_by_source = self._draw.questions_by_source  # only those with usable evidence
        self._texts = PreparedTexts(documents, reading)
        self._taught = _taught(documents, recipe) if teacher is not None else frozenset()

    def example(self, number: int, length: int) -> Example:
        """Example ``number``, about ``length`` tokens long."""
        draw = random.Random(f"{self.recipe.seed}-{number}")
        share = self.recipe.unanswerable_share
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
        text, prepared = self._texts.get(drawn.document)
        if not prepared.units:
            return None
        asked = self.reading.pair(drawn.question.text, prepared)
        room = _room(asked, length, self.reading.reanchor_tokens)
        relevant = np.zeros(len(prepared.units), bool)
        if drawn.answered:
            relevant = relevant_units(prepared.starts, prepared.ends, drawn.question.evidence)
        if (drawn.answered and not relevant.any()) or room < length // 4:
            return None
        if not drawn.answered or draw.random() < self.recipe.random_place_share:
            centre = draw.randrange(len(prepared.units))
        else:
            centre = int(draw.choice(np.flatnonzero(relevant)))
        spread = self.recipe.spread_share
        cut = spread_stretch if spread and draw.random() < spread else full_stretch
        first, last = cut(prepared.unit_ends, centre, room, draw)
        sequence = asked.sequence(first, last)
        if len(sequence.input_ids) > 2 * length:
            return None  # a single unit far longer than the sequence
        teacher = self._teacher_scores(drawn, text, prepared)
        inside = slice(first, last + 1)
        return Example(sequence, relevant[inside], None if teacher is None else teacher[inside])

    def _teacher_scores(self, drawn: Drawn, text: str, prepared: PreparedText) -> NDArray[np.float32] | None:
        """The teacher's scores if the question is the document's own: (units,)."""
        if self.teacher is None or drawn.place is None or drawn.document not in self._taught:
            return None
        document = replace(self._documents.without_text(drawn.document), text=text)
        return self.teacher.of_question(document, prepared.units, drawn.place)


def full_stretch(
    unit_ends: NDArray[np.int64], centre: int, room: int, draw: random.Random
) -> tuple[int, int]:
    """First and last unit of a stretch around unit ``centre``: ``room`` tokens, or a shorter document whole.

    The unit is anywhere in the stretch if the document is long enough on both sides. A unit near the document's
    start or end is usually as near to that of the stretch. ``unit_ends``, (units,), has the last token of each.
    """
    total, before = int(unit_ends[-1]) + 1, _tokens_before(unit_ends, centre)
    begin = min(max(0, before - draw.randrange(room)), max(0, total - room))
    return _units_within(unit_ends, centre, begin, room)


def spread_stretch(
    unit_ends: NDArray[np.int64], centre: int, room: int, draw: random.Random
) -> tuple[int, int]:
    """As `full_stretch`, but a unit near the document's start or end may be anywhere in the stretch, too.

    For that the stretch is cut shorter on the other side, down to `LEAST_STRETCH_SHARE`. All places of the unit in
    the stretch that this allows are equally likely.
    """
    total, before = int(unit_ends[-1]) + 1, _tokens_before(unit_ends, centre)
    after, room = total - before, min(room, total)
    least = LEAST_STRETCH_SHARE * room
    # the share of the stretch before the unit
    share = draw.uniform(max(0.0, 1 - after / least), min(1.0, before / least))
    tokens = float(room)
    if before < share * room:
        tokens = min(tokens, before / share)
    if after < (1 - share) * room:
        tokens = min(tokens, after / (1 - share))
    begin = min(max(0, before - round(share * tokens)), max(0, total - round(tokens)))
    return _units_within(unit_ends, centre, begin, tokens)


def _tokens_before(unit_ends: NDArray[np.int64], unit: int) -> int:
    return int(unit_ends[unit - 1]) + 1 if unit else 0


def _units_within(unit_ends: NDArray[np.int64], centre: int, begin: int, tokens: float) -> tuple[int, int]:
    """First and last unit between two tokens, ``centre`` always among them."""
    first = int(np.searchsorted(unit_ends, begin))
    last = int(np.searchsorted(unit_ends, begin + tokens, side="right")) - 1
    return min(first, centre), max(min(last, len(unit_ends) - 1), centre)


def _room(asked: QueryOnText, length: int, reanchor_tokens: int | None) -> int:
    """Document tokens that fit into a sequence together with the question and its repeats."""
    question = len(asked.question_ids)
    return int((length - question) / (1 + question / reanchor_tokens if reanchor_tokens else 1))


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
