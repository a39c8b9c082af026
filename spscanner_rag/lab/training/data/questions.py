"""The random choice of a question and a document for an example, and what may be a negative of a question."""

import random
import re
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lab.evidence.questions import Question
from spscanner_rag.lab.training.data.documents import DocumentStore
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.lexical.match import PLAIN_MATCH, lexical_scores
from spscanner_rag.lexical.words import QueryOnWords, TextWords

SMOOTHING = 0.7  # a source with n questions is drawn with weight ``min(1, n / source_cap) ** SMOOTHING``

LABEL_SHARE = 0.05
"""An answer to questions about more than this share of a source's documents, and more than two, is a label such as
"no significant difference": whether a document has these words says nothing about the question. If documents with
them were left out, their words alone would tell a scanner which documents are right."""

_FOREIGN_DRAWS = 20
_NO_WORD = re.compile(r"\W+")
_PIECE = re.compile(r"\.\d+$")

Place = tuple[int, int]  # a document's number, a question's number in it


@dataclass(frozen=True, slots=True)
class Drawn:
    """A question and the document that it is asked of."""

    document: int  # its number
    question: Question
    answered: bool  # true if the document contains the question's evidence


class QuestionDraw:
    """Draws a source by its weight, then one of its questions with unambiguous evidence, all equally likely."""

    def __init__(self, documents: DocumentStore, recipe: Recipe) -> None:
        self._documents = documents
        self._answered: dict[str, list[Place]] = {}
        self._unanswered: dict[str, list[Place]] = {}
        for number in range(len(documents)):
            document = documents.without_text(number)
            for place, question in enumerate(document.questions):
                if not question.answerable:
                    self._unanswered.setdefault(document.source, []).append((number, place))
                elif question.evidence and not question.ambiguous:
                    self._answered.setdefault(document.source, []).append((number, place))
        self.questions_by_source = {source: len(found) for source, found in sorted(self._answered.items())}
        factors = recipe.source_weights or {}
        for source in sorted(factors.keys() - self.questions_by_source.keys()):
            known = ", ".join(self.questions_by_source)
            raise ValueError(f"source_weights names {source!r}; the data has {known}")
        self.source_weights = {
            source: factors.get(source, 1.0) * min(1.0, n / recipe.source_cap) ** SMOOTHING
            for source, n in self.questions_by_source.items()
        }
        self._sources = [source for source, weight in self.source_weights.items() if weight]
        if not self._sources:
            raise ValueError("got no question with evidence to train on; see the data format in the README")
        self._unanswered_sources = [
            source
            for source in self._sources
            if source in self._unanswered or len({number for number, _ in self._answered[source]}) > 1
        ]
        if recipe.unanswerable_share and not self._unanswered_sources:
            raise ValueError(
                f"unanswerable_share is {recipe.unanswerable_share}, but no source has a question with "
                '"answerable": false or two documents to exchange questions between; expected such a source, or 0'
            )

    def answered(self, draw: random.Random) -> Drawn:
        """A question with evidence, on its document."""
        number, place = draw.choice(self._answered[self._source(self._sources, draw)])
        return Drawn(number, self._question(number, place), True)

    def unanswered(self, draw: random.Random) -> Drawn | None:
        """A question that a document does not answer; None if this draw found none.

        A source without such questions gives one of another document, unless this one has it in the same words,
        as contracts do.
        """
        source = self._source(self._unanswered_sources, draw)
        if source in self._unanswered:
            number, place = draw.choice(self._unanswered[source])
            return Drawn(number, self._question(number, place), False)
        number, _ = draw.choice(self._answered[source])
        own = {question.text for question in self._documents.without_text(number).questions}
        for _ in range(_FOREIGN_DRAWS):
            other, place = draw.choice(self._answered[source])
            question = self._question(other, place)
            if other != number and question.text not in own:
                return Drawn(number, question, False)
        return None

    def _question(self, number: int, place: int) -> Question:
        return self._documents.without_text(number).questions[place]

    def _source(self, sources: list[str], draw: random.Random) -> str:
        return draw.choices(sources, [self.source_weights[source] for source in sources])[0]


class Negatives:
    """Tells which texts of a source may count as having no answer to another document's question."""

    def __init__(self, documents: DocumentStore) -> None:
        self._documents = documents
        sizes: Counter[str] = Counter()
        given: Counter[tuple[str, str]] = Counter()
        for number in range(len(documents)):
            document = documents.without_text(number)
            sizes[document.source] += 1
            answers = {same_words(answer) for question in document.questions for answer in question.answers}
            given.update((document.source, answer) for answer in answers)
        self._labels = {
            (source, answer)
            for (source, answer), count in given.items()
            if count > max(2, LABEL_SHARE * sizes[source])
        }

    def related(self, one: int, other: int) -> bool:
        """True if two documents of a source, by number, are the same, pieces of one text, or of the same title."""
        first, second = self._documents.without_text(one), self._documents.without_text(other)
        title = same_words(first.title)
        if title and title == same_words(second.title):
            return True
        return one == other or _PIECE.sub("", first.doc_id) == _PIECE.sub("", second.doc_id)

    def have_answer(self, text: str, source: str, question: Question) -> bool:
        """True if a text has an answer to a question of ``source`` that is no label, in whole words."""
        return any(
            re.search(rf"(?<!\w){re.escape(answer.strip())}(?!\w)", text, re.IGNORECASE)
            for answer in question.answers
            if answer.strip() and (source, same_words(answer)) not in self._labels
        )


def same_words(text: str) -> str:
    """The words of a text, without case and punctuation: equal for texts in the same words."""
    return _NO_WORD.sub(" ", text).casefold().strip()


def bm25_scores(words: TextWords, query: str) -> NDArray[np.float64]:
    """BM25 of each unit of a document among its units: (units,)."""
    return lexical_scores(QueryOnWords.on_text(query, words), PLAIN_MATCH).bm25[0]
