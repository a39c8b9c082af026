"""Documents to training sequences: a question, a stretch of its document, a label for every sentence."""

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.evaluation.data import Document, relevant_units
from spscanner_rag.mamba2.reader import TokenSequence
from spscanner_rag.reading import PreparedText, Reading
from spscanner_rag.training.recipe import Recipe
from spscanner_rag.training.teacher import TeacherScores

MAX_DRAWS = 1000
"""Questions tried for one example before giving up: too long for the sequence, or without a relevant unit."""


@dataclass(frozen=True, slots=True)
class Example:
    """One training sequence."""

    sequence: TokenSequence
    relevant: NDArray[np.bool_]  # (units,)
    teacher: NDArray[np.float32] | None  # (units,): cosine of question and unit


class ExampleSource:
    """An endless, repeatable supply of training examples.

    Example number n is the same in every run with the same documents, reading and recipe, so that a resumed
    run goes on as if it had never stopped.

    Parameters
    ----------
    documents : iterable of Document
        Questions without evidence, and those whose evidence is ambiguous, are left out.
    reading : Reading
    recipe : Recipe
    teacher : TeacherScores, optional

    Raises
    ------
    ValueError
        If no document has a usable question.
    """

    def __init__(
        self,
        documents: Iterable[Document],
        reading: Reading,
        recipe: Recipe,
        teacher: TeacherScores | None = None,
    ) -> None:
        self.reading, self.recipe, self.teacher = reading, recipe, teacher
        self.documents = list(documents)
        self._questions: dict[str, list[tuple[int, int]]] = {}  # source: (document, question) numbers
        self._taught: set[int] = set()  # documents with teacher scores
        seen: Counter[str] = Counter()
        for number, document in enumerate(self.documents):
            seen[document.source] += 1
            if teacher is not None and seen[document.source] <= (
                recipe.teacher_documents or len(self.documents)
            ):
                self._taught.add(number)
            for place, question in enumerate(document.questions):
                if question.evidence and question.answerable and not question.ambiguous:
                    self._questions.setdefault(document.source, []).append((number, place))
        self.questions_by_source = {source: len(found) for source, found in sorted(self._questions.items())}
        self.source_weights = _source_weights(self.questions_by_source, recipe)
        if not any(self.source_weights.values()):
            raise ValueError("got no question with evidence to train on; see the data format in the README")
        self._texts: dict[int, PreparedText] = {}

    def example(self, number: int, length: int) -> Example:
        """Example ``number``, about ``length`` tokens long."""
        draw = random.Random(f"{self.recipe.seed}-{number}")
        sources, weights = zip(*self.source_weights.items(), strict=True)
        for _ in range(MAX_DRAWS):
            source = draw.choices(sources, weights)[0]
            document_number, place = draw.choice(self._questions[source])
            example = self._cut(document_number, place, length, draw)
            if example is not None:
                return example
        raise ValueError(
            f"none of {MAX_DRAWS} drawn questions fits a sequence of {length} tokens; raise sequence_tokens"
        )

    def _cut(self, document_number: int, place: int, length: int, draw: random.Random) -> Example | None:
        document, text = self.documents[document_number], self._text(document_number)
        question = document.questions[place]
        laid = self.reading.lay(question.text, text)
        every = self.reading.reanchor_tokens
        room = int((length - len(laid.question_ids)) / (1 + len(laid.question_ids) / every if every else 1))
        relevant = relevant_units(text.starts, text.ends, question.evidence)
        if not relevant.any() or room < length // 4:
            return None
        if draw.random() < self.recipe.random_place_share:
            centre = draw.randrange(len(text.units))
        else:
            centre = int(draw.choice(np.flatnonzero(relevant)))
        first, last = _stretch(text.tokens.unit_ends, centre, room, draw)
        sequence = self.reading.sequence(laid, text, first, last)
        if len(sequence.input_ids) > 2 * length:
            return None  # a single unit far longer than the sequence
        inside = slice(first, last + 1)
        teacher = self._cosines(document, text, place)[inside] if document_number in self._taught else None
        return Example(sequence, relevant[inside], teacher)

    def _cosines(self, document: Document, text: PreparedText, place: int) -> NDArray[np.float32]:
        assert self.teacher is not None
        units, questions = self.teacher.embeddings(document, text.units)
        cosines: NDArray[np.float32] = units.astype(np.float32) @ questions[place].astype(np.float32)
        return cosines

    def _text(self, number: int) -> PreparedText:
        if number not in self._texts:
            self._texts[number] = self.reading.prepare(self.documents[number].text)
        return self._texts[number]


def _source_weights(questions: Mapping[str, int], recipe: Recipe) -> dict[str, float]:
    factors = recipe.source_weights or {}
    unknown = sorted(set(factors) - set(questions))
    if unknown:
        raise ValueError(f"source_weights names {unknown[0]!r}; the data has {', '.join(sorted(questions))}")
    return {
        source: factors.get(source, 1.0) * min(1.0, n / recipe.source_cap) ** recipe.source_smoothing
        for source, n in questions.items()
    }


def _stretch(unit_ends: NDArray[np.int64], centre: int, room: int, draw: random.Random) -> tuple[int, int]:
    """First and last unit of a stretch of about ``room`` tokens with ``centre`` at a random place in it."""
    total = int(unit_ends[-1]) + 1
    centre_start = int(unit_ends[centre - 1]) + 1 if centre else 0
    begin = min(max(0, centre_start - draw.randrange(room)), max(0, total - room))
    first = int(np.searchsorted(unit_ends, begin))
    last = int(np.searchsorted(unit_ends, begin + room, side="right")) - 1
    return min(first, centre), max(min(last, len(unit_ends) - 1), centre)
