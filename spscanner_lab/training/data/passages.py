"""Examples for a reranker: columns of passages for a question."""

import random
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_lab.training.data.document_store import DocumentStore
from spscanner_lab.training.data.negatives import has_answer, labels_of, related
from spscanner_lab.training.data.question_draw import MAX_DRAWS, Drawn, QuestionDraw
from spscanner_lab.training.recipe import Recipe
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.lexical.lexical_scores import PLAIN_MATCH, lexical_scores
from spscanner_rag.lexical.query_on_words import QueryOnWords
from spscanner_rag.lexical.words import TextWords, index_words
from spscanner_rag.results.coverage import relevant_units
from spscanner_rag.text.units import Segmenter

# negatives are drawn from this many times as many of the nearest passages as are wanted
HARD_CHOICE = 4
# times HARD_CHOICE: nearest passages per negative that are tried before random ones
_READ_CHOICE = 4

MOST_UNITS = 100_000
"""A larger source is divided into collections of about this many units, each with
documents from all over the source; searching more units would take longer than the
rest of drawing an example."""

Place = tuple[int, int]  # the number of a document, and of a passage in it


class PassageColumn(NamedTuple):
    """A question and passages, of which the first answers it."""

    question: str
    passages: tuple[str, ...]


class PassageDraw(QuestionDraw):
    """An endless, repeatable supply of questions with passages.

    Number n is the same in every run.

    The passages of all documents of a source, or with ``rerank_from = "document"`` of
    the question's own, are ranked by BM25. A passage with an answer to the question is
    not a negative, nor is one of a `related` document. Words are counted once, which
    takes about 4 s for 14 MB.
    """

    def __init__(
        self, documents: DocumentStore, recipe: Recipe, segmenter: Segmenter
    ) -> None:
        super().__init__(documents, recipe)
        self.segmenter = segmenter
        self._labels = labels_of(documents)
        # by document number: the characters at which its units start; the index of its
        # source, or of the part of the source that has this document, and the documents
        # in that index
        self._starts: dict[int, NDArray[np.int32]] = {}
        self._index: dict[int, tuple[CollectionIndex, list[int]]] = {}
        numbers_by_source: dict[str, list[int]] = {}
        for source in self._sources:
            numbers_by_source[source] = []
        for number in range(len(documents)):
            source = documents.without_text(number).source
            if source in numbers_by_source:
                numbers_by_source[source].append(number)
        for numbers in numbers_by_source.values():
            self._index_documents(numbers)

    def _index_documents(self, numbers: list[int]) -> None:
        """Index the documents of a source."""
        texts: dict[int, list[str]] = {}
        for number in numbers:
            units = self.segmenter.segment(self._documents.document(number).text)
            texts[number] = [unit.model_text for unit in units]
            starts = [unit.start for unit in units]
            self._starts[number] = np.array(starts, np.int32)
        total_units = sum(map(len, texts.values()))
        parts = -(-total_units // MOST_UNITS)
        for part in range(parts):
            members = numbers[part::parts]
            index = CollectionIndex.of([texts[number] for number in members])
            self._index.update(dict.fromkeys(members, (index, members)))

    def column(self, number: int) -> PassageColumn:
        """Column ``number``.

        ``ValueError`` if `MAX_DRAWS` questions have no passage without their answer.
        """
        draw = random.Random(f"{self.recipe.seed}-{number}")
        for _ in range(MAX_DRAWS):
            drawn = self.answered(draw, number)
            chosen = self._places(drawn, draw)
            if chosen is not None:
                question = drawn.question.text.strip()
                return PassageColumn(question, tuple(map(self._passage, chosen)))
        raise ValueError(
            f"none of {MAX_DRAWS} drawn questions has a passage without its answer;"
            " expected documents of several paragraphs, or smaller passages"
        )

    def _places(self, drawn: Drawn, draw: random.Random) -> list[Place] | None:
        """A passage with evidence, then the negatives.

        None if there is no such passage or no negative.
        """
        starts = self._starts[drawn.document]
        stops = np.append(starts[1:], np.iinfo(np.int32).max)
        relevant = relevant_units(starts, stops, drawn.question.evidence)
        if not relevant.any():
            return None
        right = (drawn.document, int(draw.choice(np.flatnonzero(relevant))))
        negatives = self._negatives(drawn, relevant, draw)
        if self.recipe.rerank_negatives and not negatives:
            return None
        return [right, *negatives]

    def _negatives(
        self, drawn: Drawn, relevant: NDArray[np.bool_], draw: random.Random
    ) -> list[Place]:
        """Up to as many negatives as the recipe wants.

        Some of the nearest, and random ones for the others.
        """
        wanted = self.recipe.rerank_negatives
        negatives = self._hard_negatives(drawn, relevant, draw)
        numbers = self._index[drawn.document][1]
        if self.recipe.rerank_from == "document":
            numbers = [drawn.document]
        for _ in range(HARD_CHOICE * wanted):
            if len(negatives) == wanted:
                break
            number = draw.choice(numbers)
            units = len(self._starts[number])
            if units:
                place = (number, draw.randrange(units))
                if self._is_negative(drawn, relevant, place):
                    negatives[place] = None
        return list(negatives)

    def _hard_negatives(
        self, drawn: Drawn, relevant: NDArray[np.bool_], draw: random.Random
    ) -> dict[Place, None]:
        """Negatives among the nearest passages, in the order drawn."""
        wanted = self.recipe.rerank_negatives - self.recipe.rerank_random
        negatives: dict[Place, None] = {}
        if not wanted:
            return negatives
        for place in self._nearest(drawn):
            if self._is_negative(drawn, relevant, place):
                negatives[place] = None
            if len(negatives) == HARD_CHOICE * wanted:
                break
        if len(negatives) > wanted:
            return dict.fromkeys(draw.sample(list(negatives), wanted))
        return negatives

    def _nearest(self, drawn: Drawn) -> Iterator[Place]:
        """The passages of the source or of the document, the best by BM25 first."""
        index, numbers = self._index[drawn.document]
        units = [len(self._starts[number]) for number in numbers]
        firsts = np.cumsum([0, *units])
        query = index.query_on_words(drawn.question.text)
        scores = lexical_scores(query, PLAIN_MATCH).bm25[0]  # (passages of the source,)
        tried = HARD_CHOICE * _READ_CHOICE * self.recipe.rerank_negatives
        best = np.argsort(-scores, kind="stable")
        if self.recipe.rerank_from == "document":
            first, stop = firsts[numbers.index(drawn.document) :][:2]
            best = best[(first <= best) & (best < stop)]
        best = best[:tried]
        texts = np.searchsorted(firsts, best, side="right") - 1
        for text, unit in zip(texts, best, strict=True):
            yield numbers[text], int(unit - firsts[text])

    def _is_negative(
        self, drawn: Drawn, relevant: NDArray[np.bool_], place: Place
    ) -> bool:
        number, unit = place
        document = self._documents.without_text(number)
        if number == drawn.document:
            if relevant[unit]:
                return False
        elif related(self._documents.without_text(drawn.document), document):
            return False
        text = self._passage(place)
        if not text:
            return False
        return not has_answer(text, document.source, drawn.question, self._labels)

    def _passage(self, place: Place) -> str:
        number, unit = place
        starts = self._starts[number]
        stop = int(starts[unit + 1]) if unit + 1 < len(starts) else None
        return self._documents.document(number).text[int(starts[unit]) : stop].strip()


def bm25_scores(words: TextWords, query: str) -> NDArray[np.float64]:
    """BM25 score of each unit among the units of its document: (units,)."""
    return lexical_scores(QueryOnWords.on_text(query, words), PLAIN_MATCH).bm25[0]


def word_scores(column: PassageColumn) -> list[float]:
    """Score a column's passages as a teacher.

    The scores are BM25 among themselves, with the labelled one above the best.
    """
    scores = bm25_scores(index_words(column.passages), column.question)
    scores[0] = scores.max() + 1.0
    return [float(score) for score in scores]
