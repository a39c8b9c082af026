"""Drawing questions from the documents of a training run."""

import random
from bisect import bisect_right
from itertools import accumulate
from typing import NamedTuple

from spscanner_lab.evidence.questions import Question
from spscanner_lab.training.data.document_store import DocumentStore
from spscanner_lab.training.recipe import Recipe

# a source with n questions is drawn with weight ``min(1, n / source_cap) ** SMOOTHING``
SMOOTHING = 0.7

MAX_DRAWS = 1000
"""Maximum draws for an example: a drawn question may be too long for the sequence or
have no relevant unit."""

# questions of other documents that are tried for a document without an answer
_FOREIGN_DRAWS = 20


class Drawn(NamedTuple):
    """A question and the document that it is asked about."""

    document: int  # its number
    question: Question
    answered: bool  # true if the document contains the question's evidence


class QuestionDraw:
    """Draws a source by its weight, then one of its questions.

    Its questions with unambiguous evidence are all equally likely.
    """

    def __init__(self, documents: DocumentStore, recipe: Recipe) -> None:
        self._documents = documents
        self.recipe = recipe
        self._answered: dict[str, list[Drawn]] = {}
        self._unanswered: dict[str, list[Drawn]] = {}
        for number in range(len(documents)):
            self._add_questions(number)
        self.questions_by_source: dict[str, int] = {}
        for source in sorted(self._answered):
            self.questions_by_source[source] = len(self._answered[source])
        self.source_weights = self._weights()
        self._sources: list[str] = []
        for source, weight in self.source_weights.items():
            if weight:
                self._sources.append(source)
        if not self._sources:
            raise ValueError(
                "got no question with evidence to train on; see the format in"
                " docs/training.md"
            )
        self._unanswered_sources = list(filter(self._has_unanswered, self._sources))
        if recipe.unanswerable_share and not self._unanswered_sources:
            raise ValueError(
                f"unanswerable_share is {recipe.unanswerable_share}, but no source has"
                ' a question with "answerable": false or two documents to exchange'
                " questions between; expected such a source, or 0"
            )

    def _add_questions(self, number: int) -> None:
        document = self._documents.without_text(number)
        for question in document.questions:
            if not question.answerable:
                unanswered = self._unanswered.setdefault(document.source, [])
                unanswered.append(Drawn(number, question, False))
            elif question.evidence and not question.ambiguous:
                answered = self._answered.setdefault(document.source, [])
                answered.append(Drawn(number, question, True))

    def _weights(self) -> dict[str, float]:
        factors = self.recipe.source_weights or {}
        for source in sorted(factors.keys() - self.questions_by_source.keys()):
            sources = ", ".join(self.questions_by_source)
            raise ValueError(f"source_weights names {source!r}; the data has {sources}")
        weights = {}
        for source, questions in self.questions_by_source.items():
            size = min(1.0, questions / self.recipe.source_cap)
            weights[source] = factors.get(source, 1.0) * size**SMOOTHING
        return weights

    def _has_unanswered(self, source: str) -> bool:
        """True if a source has unanswerable questions or can exchange questions."""
        if source in self._unanswered:
            return True
        documents = {drawn.document for drawn in self._answered[source]}
        return len(documents) > 1

    def answered(self, draw: random.Random, number: int = 0) -> Drawn:
        """A question with evidence, and its document, for example ``number``."""
        if self.recipe.stratified:
            source = self._source_of_place(number)
        else:
            source = self._source(self._sources, draw)
        return draw.choice(self._answered[source])

    def _source_of_place(self, number: int) -> str:
        """The source of an example by its place in its step.

        The places are equally far apart on a line that the sources share by their
        weights; where the first one is, is drawn for each step.
        """
        examples = self.recipe.sequences_per_step
        step, place = divmod(number, examples)
        first = random.Random(f"{self.recipe.seed}-sources-{step}").random()
        ends = list(accumulate(self.source_weights[name] for name in self._sources))
        position = (place + first) / examples * ends[-1]
        return self._sources[min(bisect_right(ends, position), len(ends) - 1)]

    def unanswered(self, draw: random.Random) -> Drawn | None:
        """A question that a document does not answer, or None if this draw has none.

        In a source without such questions, a document gets the question of another one,
        unless it has a question in the same words, as contracts do.
        """
        source = self._source(self._unanswered_sources, draw)
        if source in self._unanswered:
            return draw.choice(self._unanswered[source])
        number = draw.choice(self._answered[source]).document
        document = self._documents.without_text(number)
        texts = {question.text for question in document.questions}
        for _ in range(_FOREIGN_DRAWS):
            other = draw.choice(self._answered[source])
            if other.document != number and other.question.text not in texts:
                return Drawn(number, other.question, False)
        return None

    def _source(self, sources: list[str], draw: random.Random) -> str:
        weights = [self.source_weights[source] for source in sources]
        return draw.choices(sources, weights)[0]
