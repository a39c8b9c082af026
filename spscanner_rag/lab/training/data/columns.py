"""Columns for training a reranker: a question with one passage that answers it and hard negatives."""

import random
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lab.training.data.documents import DocumentStore
from spscanner_rag.lab.training.data.examples import MAX_DRAWS
from spscanner_rag.lab.training.data.questions import Drawn, Negatives, QuestionDraw
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.lexical.match import PLAIN_MATCH, lexical_scores
from spscanner_rag.results.coverage import relevant_units
from spscanner_rag.text.units import Segmenter

MOST_UNITS = 100_000
"""A larger source is divided into collections of about this many units, each with documents from all over it;
asking a question of more would take longer than drawing the rest of an example."""

HARD_CHOICE = 4  # negatives are drawn from the nearest passages, this many times as many as are wanted

_READ_CHOICE = 4  # passages that are looked at, times HARD_CHOICE, before random ones are taken

Place = tuple[int, int]  # a document's number, a passage's number in it


@dataclass(frozen=True, slots=True)
class PassageColumn:
    """A question and passages, of which the first answers it."""

    question: str
    passages: tuple[str, ...]


class SourceCollections:
    """Word counts of all documents of some sources, by unit; made once, some 4 s for 14 MB of text."""

    def __init__(self, documents: DocumentStore, segmenter: Segmenter, sources: Collection[str]) -> None:
        # by the number of a document: the characters at which its units start; the index of its source, or of the
        # part of it that has this document, and the documents in there
        self.unit_starts: dict[int, NDArray[np.int32]] = {}
        self.of: dict[int, tuple[CollectionIndex, list[int]]] = {}
        numbers_of: dict[str, list[int]] = {}
        for number in range(len(documents)):
            numbers_of.setdefault(documents.without_text(number).source, []).append(number)
        for source in sources:
            texts = {}
            for number in numbers_of.get(source, ()):
                units = segmenter.segment(documents.document(number).text)
                texts[number] = [unit.model_text for unit in units]
                self.unit_starts[number] = np.array([unit.start for unit in units], np.int32)
            parts = -(-sum(map(len, texts.values())) // MOST_UNITS)
            for part in range(parts):
                numbers = list(texts)[part::parts]
                index = CollectionIndex.of([texts[number] for number in numbers])
                self.of.update(dict.fromkeys(numbers, (index, numbers)))


class PassageDraw:
    """An endless, repeatable supply of questions with passages: number n is the same in every run.

    The passages of all documents of a source are ranked by BM25. A passage with an answer to the question is no
    negative, nor is one of another document that belongs to the same text.
    """

    def __init__(
        self,
        documents: DocumentStore,
        recipe: Recipe,
        segmenter: Segmenter,
    ) -> None:
        self._documents, self._recipe = documents, recipe
        self._draw = QuestionDraw(documents, recipe)
        self.questions_by_source = self._draw.questions_by_source
        self._negatives = Negatives(documents)
        weights = self._draw.source_weights
        self._collections = SourceCollections(documents, segmenter, [s for s in weights if weights[s]])

    def column(self, number: int) -> PassageColumn:
        """Column ``number``; ``ValueError`` if none of many questions has a passage to tell its answer from."""
        draw = random.Random(f"{self._recipe.seed}-{number}")
        for _ in range(MAX_DRAWS):
            drawn = self._draw.answered(draw)
            places = self._places(drawn, draw)
            if places is not None:
                return PassageColumn(drawn.question.text.strip(), tuple(map(self._passage, places)))
        raise ValueError(
            f"none of {MAX_DRAWS} drawn questions has a passage without its answer; expected documents of "
            "several paragraphs, or smaller passages"
        )

    def _places(self, drawn: Drawn, draw: random.Random) -> list[Place] | None:
        """A passage with evidence and then the negatives; None if one or the other does not exist."""
        starts = self._collections.unit_starts[drawn.document]
        stops = np.append(starts[1:], np.iinfo(np.int32).max)
        relevant = relevant_units(starts, stops, drawn.question.evidence)
        if not relevant.any():
            return None
        right = (drawn.document, int(draw.choice(np.flatnonzero(relevant))))
        wrong = self._wrong_places(drawn, relevant, draw)
        return [right, *wrong] if wrong or not self._recipe.rerank_negatives else None

    def _wrong_places(self, drawn: Drawn, relevant: NDArray[np.bool_], draw: random.Random) -> list[Place]:
        """As many negatives as the recipe wants: some of the nearest, and random ones where those are too few."""
        wanted, found = self._recipe.rerank_negatives, dict[Place, None]()
        hard = wanted - self._recipe.rerank_random
        for near in self._nearest(drawn) if hard else ():
            if self._is_negative(drawn, relevant, near):
                found[near] = None
            if len(found) == HARD_CHOICE * hard:
                break
        if len(found) > hard:
            found = dict.fromkeys(draw.sample(list(found), hard))
        numbers = self._collections.of[drawn.document][1]
        for _ in range(HARD_CHOICE * wanted):
            if len(found) == wanted:
                break
            number = draw.choice(numbers)
            units = len(self._collections.unit_starts[number])
            if units:
                place = (number, draw.randrange(units))
                if self._is_negative(drawn, relevant, place):
                    found[place] = None
        return list(found)

    def _nearest(self, drawn: Drawn) -> Iterator[Place]:
        index, numbers = self._collections.of[drawn.document]
        firsts = np.cumsum([0, *(len(self._collections.unit_starts[number]) for number in numbers)])
        found = lexical_scores(index.asked(drawn.question.text), PLAIN_MATCH)
        scores = found.bm25[0]  # (passages of the source,)
        most = HARD_CHOICE * _READ_CHOICE * self._recipe.rerank_negatives
        best = np.argsort(-scores, kind="stable")[:most]
        texts = np.searchsorted(firsts, best, side="right") - 1
        return ((numbers[text], int(unit - firsts[text])) for text, unit in zip(texts, best, strict=True))

    def _is_negative(self, drawn: Drawn, relevant: NDArray[np.bool_], place: Place) -> bool:
        number, unit = place
        own = number == drawn.document
        if relevant[unit] if own else self._negatives.related(drawn.document, number):
            return False
        source = self._documents.without_text(number).source
        text = self._passage(place)
        return bool(text) and not self._negatives.have_answer(text, source, drawn.question)

    def _passage(self, place: Place) -> str:
        number, unit = place
        starts = self._collections.unit_starts[number]
        stop = int(starts[unit + 1]) if unit + 1 < len(starts) else None
        return self._documents.document(number).text[int(starts[unit]) : stop].strip()
