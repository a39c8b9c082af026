"""Examples drawn from documents.

Stretches with labelled sentences, and columns of passages for a reranker.
"""

import os
import random
import re
import tempfile
import weakref
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_lab.evidence.questions import Document, Question
from spscanner_lab.training.recipe import Recipe
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.lexical.lexical_scores import PLAIN_MATCH, lexical_scores
from spscanner_rag.lexical.query_on_words import QueryOnWords
from spscanner_rag.lexical.words import TextWords
from spscanner_rag.mamba2.reader import TokenSequence
from spscanner_rag.results.coverage import relevant_units
from spscanner_rag.scan.reading import Reading
from spscanner_rag.system.whole_files import telling_of_full_disks
from spscanner_rag.text.units import Segmenter

# a source with n questions is drawn with weight ``min(1, n / source_cap) ** SMOOTHING``
SMOOTHING = 0.7
KEPT_BYTES = 20_000_000  # of text kept prepared in memory, which takes about 300 MB
# negatives are drawn from this many times as many of the nearest passages as are wanted
HARD_CHOICE = 4

MAX_DRAWS = 1000
"""Maximum draws for an example: a drawn question may be too long for the sequence or
have no relevant unit."""

LABEL_SHARE = 0.05
"""An answer that more than this share of a source's documents, and more than two of
them, have is a label such as "no significant difference": whether a document
contains it says nothing about the question. If documents with labels were excluded
from the negatives, these words alone would tell a scanner which documents are right."""

MOST_UNITS = 100_000
"""A larger source is divided into collections of about this many units, each with
documents from all over the source; searching more units would take longer than the
rest of drawing an example."""

# times HARD_CHOICE: nearest passages per negative that are tried before random ones
_READ_CHOICE = 4
_FOREIGN_DRAWS = 20
_NO_WORD = re.compile(r"\W+")
_PIECE = re.compile(r"\.\d+$")

Place = tuple[int, int]  # the number of a document, and of a passage in it


class DocumentStore:
    """Documents by number, in the order given.

    A text is read from disk when it is needed.

    The file of texts has no name, so it vanishes even when the process is killed.
    """

    def __init__(
        self, documents: Iterable[Document], folder: Path | None = None
    ) -> None:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        self._texts = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        weakref.finalize(self, self._texts.close)
        # each document without its text, the text's first byte, and its length in bytes
        self._entries: list[tuple[Document, int, int]] = []
        position = 0
        with telling_of_full_disks(folder or Path(tempfile.gettempdir())):
            for document in documents:
                # lone surrogates are text too
                encoded = document.text.encode("utf-8", "surrogatepass")
                self._texts.write(encoded)
                self._entries.append(
                    (replace(document, text=""), position, len(encoded))
                )
                position += len(encoded)
            self._texts.flush()

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Document]:
        return (self.document(number) for number in range(len(self)))

    @property
    def bytes(self) -> int:
        """The total length of the texts."""
        return sum(length for _, _, length in self._entries)

    def leave_out(self, shared: Collection[tuple[str, str]]) -> None:
        """Forget documents, given by source and id, and renumber the others."""
        self._entries = [
            entry
            for entry in self._entries
            if (entry[0].source, entry[0].doc_id) not in shared
        ]

    def without_text(self, number: int) -> Document:
        """Document ``number`` with an empty text, which spares reading it from disk."""
        return self._entries[number][0]

    def document(self, number: int) -> Document:
        """Document ``number`` with its text."""
        document, start, length = self._entries[number]
        # pread, since forked processes share the position that seek would set
        text = os.pread(self._texts.fileno(), length, start).decode(
            "utf-8", "surrogatepass"
        )
        return replace(document, text=text)


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
            document = documents.without_text(number)
            for question in document.questions:
                if not question.answerable:
                    self._unanswered.setdefault(document.source, []).append(
                        Drawn(number, question, False)
                    )
                elif question.evidence and not question.ambiguous:
                    self._answered.setdefault(document.source, []).append(
                        Drawn(number, question, True)
                    )
        self.questions_by_source = {
            source: len(found) for source, found in sorted(self._answered.items())
        }
        factors = recipe.source_weights or {}
        for source in sorted(factors.keys() - self.questions_by_source.keys()):
            known = ", ".join(self.questions_by_source)
            raise ValueError(f"source_weights names {source!r}; the data has {known}")
        self.source_weights = {
            source: (
                factors.get(source, 1.0) * min(1.0, n / recipe.source_cap) ** SMOOTHING
            )
            for source, n in self.questions_by_source.items()
        }
        self._sources = [
            source for source, weight in self.source_weights.items() if weight
        ]
        if not self._sources:
            raise ValueError(
                "got no question with evidence to train on; see the format in"
                " docs/training.md"
            )
        self._unanswered_sources = [
            source
            for source in self._sources
            if source in self._unanswered
            or len({drawn.document for drawn in self._answered[source]}) > 1
        ]
        if recipe.unanswerable_share and not self._unanswered_sources:
            raise ValueError(
                f"unanswerable_share is {recipe.unanswerable_share}, but no source has"
                ' a question with "answerable": false or two documents to exchange'
                " questions between; expected such a source, or 0"
            )

    def answered(self, draw: random.Random) -> Drawn:
        """A question with evidence, and its document."""
        return draw.choice(self._answered[self._source(self._sources, draw)])

    def unanswered(self, draw: random.Random) -> Drawn | None:
        """A question that a document does not answer; None if this draw found none.

        In a source without such questions, a document gets the question of another one,
        unless it has a question in the same words, as contracts do.
        """
        source = self._source(self._unanswered_sources, draw)
        if source in self._unanswered:
            return draw.choice(self._unanswered[source])
        number = draw.choice(self._answered[source]).document
        own = {
            question.text for question in self._documents.without_text(number).questions
        }
        for _ in range(_FOREIGN_DRAWS):
            other = draw.choice(self._answered[source])
            if other.document != number and other.question.text not in own:
                return Drawn(number, other.question, False)
        return None

    def _source(self, sources: list[str], draw: random.Random) -> str:
        return draw.choices(
            sources, [self.source_weights[source] for source in sources]
        )[0]


def labels_of(documents: DocumentStore) -> set[tuple[str, str]]:
    """The pairs of a source and an answer that is a label by `LABEL_SHARE`."""
    sizes: Counter[str] = Counter()
    given: Counter[tuple[str, str]] = Counter()
    for number in range(len(documents)):
        document = documents.without_text(number)
        sizes[document.source] += 1
        answers = {
            same_words(answer)
            for question in document.questions
            for answer in question.answers
        }
        given.update((document.source, answer) for answer in answers)
    return {
        own
        for own, count in given.items()
        if count > max(2, LABEL_SHARE * sizes[own[0]])
    }


def related(one: Document, other: Document) -> bool:
    """True if two documents of a source have a text or a title in common.

    They are the same, are pieces of one text, or have the same title.
    """
    title = same_words(one.title)
    same_title = title and title == same_words(other.title)
    return bool(same_title) or _PIECE.sub("", one.doc_id) == _PIECE.sub(
        "", other.doc_id
    )


def has_answer(
    text: str, source: str, question: Question, labels: Collection[tuple[str, str]] = ()
) -> bool:
    """True if a text contains, as words, an answer to a question of ``source``.

    Answers that are labels do not count.
    """
    return any(
        re.search(rf"(?<!\w){re.escape(answer.strip())}(?!\w)", text, re.IGNORECASE)
        for answer in question.answers
        if answer.strip() and (source, same_words(answer)) not in labels
    )


def same_words(text: str) -> str:
    """The words of a text without case and punctuation.

    They are equal for texts with the same words.
    """
    return _NO_WORD.sub(" ", text).casefold().strip()


def bm25_scores(words: TextWords, query: str) -> NDArray[np.float64]:
    """BM25 score of each unit among the units of its document: (units,)."""
    return lexical_scores(QueryOnWords.on_text(query, words), PLAIN_MATCH).bm25[0]


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
        most = max(1, KEPT_BYTES * len(documents) // max(1, documents.bytes))
        self._prepared = lru_cache(most)(
            lambda number: reading.index_text(documents.document(number).text)
        )

    def example(self, number: int, length: int) -> Example:
        """Example ``number``, about ``length`` tokens long."""
        draw = random.Random(f"{self.recipe.seed}-{number}")
        share = self.recipe.unanswerable_share
        answered = not share or draw.random() >= share
        for _ in range(MAX_DRAWS):
            drawn = self.answered(draw) if answered else self.unanswered(draw)
            example = None if drawn is None else self._cut(drawn, length, draw)
            if example is not None:
                return example
        raise ValueError(
            f"none of {MAX_DRAWS} drawn questions fits a sequence of {length} tokens;"
            " raise sequence_tokens"
        )

    def _cut(self, drawn: Drawn, length: int, draw: random.Random) -> Example | None:
        prepared = self._prepared(drawn.document)
        if not prepared.units:
            return None
        wanted = np.zeros(len(prepared.units), bool)
        if drawn.answered:
            wanted = relevant_units(
                prepared.starts, prepared.ends, drawn.question.evidence
            )
        asked = self.reading.pair(drawn.question.text, prepared)
        question = len(asked.question_ids)
        reanchor = self.reading.settings.reanchor_tokens
        # tokens for the document, beside the question and its repeats
        room = int((length - question) / (1 + (question / reanchor if reanchor else 0)))
        if (drawn.answered and not wanted.any()) or room < length // 4:
            return None
        if wanted.any() and draw.random() >= self.recipe.random_place_share:
            centre = int(draw.choice(np.flatnonzero(wanted)))
        else:
            centre = draw.randrange(len(prepared.units))
        first, last = full_stretch(prepared.unit_ends, centre, room, draw)
        sequence = asked.sequence(first, last)
        # a single unit can be far longer than the sequence
        return (
            Example(sequence, wanted[first : last + 1])
            if len(sequence.input_ids) <= 2 * length
            else None
        )


def full_stretch(
    unit_ends: NDArray[np.int64], centre: int, room: int, draw: random.Random
) -> tuple[int, int]:
    """First and last unit of a stretch of ``room`` tokens around unit ``centre``.

    Or of all of a shorter document.

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


class PassageColumn(NamedTuple):
    """A question and passages, of which the first answers it."""

    question: str
    passages: tuple[str, ...]


class PassageDraw(QuestionDraw):
    """An endless, repeatable supply of questions with passages.

    Number n is the same in every run.

    The passages of all documents of a source are ranked by BM25. A passage with an
    answer to the question is not a negative, nor is one of a `related` document. Words
    are counted once, which takes about 4 s for 14 MB.
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
        numbers_of: dict[str, list[int]] = {source: [] for source in self._sources}
        for number in range(len(documents)):
            numbers_of.get(documents.without_text(number).source, []).append(number)
        for own in numbers_of.values():
            texts = {}
            for number in own:
                units = segmenter.segment(documents.document(number).text)
                texts[number] = [unit.model_text for unit in units]
                self._starts[number] = np.array(
                    [unit.start for unit in units], np.int32
                )
            parts = -(-sum(map(len, texts.values())) // MOST_UNITS)
            for part in range(parts):
                numbers = list(texts)[part::parts]
                index = CollectionIndex.of([texts[number] for number in numbers])
                self._index.update(dict.fromkeys(numbers, (index, numbers)))

    def column(self, number: int) -> PassageColumn:
        """Column ``number``.

        ``ValueError`` if `MAX_DRAWS` questions have no passage without their answer.
        """
        draw = random.Random(f"{self.recipe.seed}-{number}")
        for _ in range(MAX_DRAWS):
            drawn = self.answered(draw)
            places = self._places(drawn, draw)
            if places is not None:
                return PassageColumn(
                    drawn.question.text.strip(), tuple(map(self._passage, places))
                )
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
        wrong = self._wrong_places(drawn, relevant, draw)
        return [right, *wrong] if wrong or not self.recipe.rerank_negatives else None

    def _wrong_places(
        self, drawn: Drawn, relevant: NDArray[np.bool_], draw: random.Random
    ) -> list[Place]:
        """Up to as many negatives as the recipe wants.

        Some of the nearest, and random ones for the others.
        """
        wanted = self.recipe.rerank_negatives
        found = dict[Place, None]()
        hard = wanted - self.recipe.rerank_random
        for near in self._nearest(drawn) if hard else ():
            if self._is_negative(drawn, relevant, near):
                found[near] = None
            if len(found) == HARD_CHOICE * hard:
                break
        if len(found) > hard:
            found = dict.fromkeys(draw.sample(list(found), hard))
        numbers = self._index[drawn.document][1]
        for _ in range(HARD_CHOICE * wanted):
            if len(found) == wanted:
                break
            number = draw.choice(numbers)
            units = len(self._starts[number])
            if units:
                place = (number, draw.randrange(units))
                if self._is_negative(drawn, relevant, place):
                    found[place] = None
        return list(found)

    def _nearest(self, drawn: Drawn) -> Iterator[Place]:
        index, numbers = self._index[drawn.document]
        firsts = np.cumsum([0, *(len(self._starts[number]) for number in numbers)])
        found = lexical_scores(index.query_on_words(drawn.question.text), PLAIN_MATCH)
        scores = found.bm25[0]  # (passages of the source,)
        most = HARD_CHOICE * _READ_CHOICE * self.recipe.rerank_negatives
        best = np.argsort(-scores, kind="stable")[:most]
        texts = np.searchsorted(firsts, best, side="right") - 1
        return (
            (numbers[text], int(unit - firsts[text]))
            for text, unit in zip(texts, best, strict=True)
        )

    def _is_negative(
        self, drawn: Drawn, relevant: NDArray[np.bool_], place: Place
    ) -> bool:
        own, other = (
            self._documents.without_text(number)
            for number in (drawn.document, place[0])
        )
        if relevant[place[1]] if place[0] == drawn.document else related(own, other):
            return False
        text = self._passage(place)
        return bool(text) and not has_answer(
            text, other.source, drawn.question, self._labels
        )

    def _passage(self, place: Place) -> str:
        number, unit = place
        starts = self._starts[number]
        stop = int(starts[unit + 1]) if unit + 1 < len(starts) else None
        return self._documents.document(number).text[int(starts[unit]) : stop].strip()
