"""Strategies: questions with their evidence, made of sub-documents by asking a language model."""

import random
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from spscanner_rag.baselines.embedders import Encoder, embed_checked
from spscanner_rag.lab.synthesis.conversation import Conversation, DroppedError, Values, listed
from spscanner_rag.lab.synthesis.reply_form import Field, Link, MalformedReplyError
from spscanner_rag.lab.synthesis.settings import SynthesisSettings
from spscanner_rag.lab.synthesis.sub_documents import (
    LanguageDetector,
    Sentence,
    SubDocument,
    is_about_a_notice,
    joined_units,
)

Span = tuple[int, int]
THIRDS = {"start": (0.0, 1 / 3), "middle": (1 / 3, 2 / 3), "end": (2 / 3, 1.0), "anywhere": (0.0, 1.0)}

_LONGEST_QUESTION = 400
_MATERIAL = re.compile(
    r"\b(?:chunks?|connections?|linked units?|numbered (?:units?|sentences?))\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Made:
    """A question with its evidence: character spans of the sub-document, in order.

    ``details`` say how it was made; `inspect` shows them.
    """

    question: str
    evidence: tuple[tuple[int, int], ...]
    answer: str = ""
    details: dict[str, Any] = field(default_factory=dict)


class QuestionMaker(Protocol):
    """A strategy: makes one question of a sub-document."""

    name: str

    def make(self, sub: SubDocument, talk: Conversation) -> Made:
        """The question; raises `DroppedError` if none can be made."""
        ...


@dataclass(frozen=True, slots=True)
class QuestionCheck:
    """Refuses questions that would teach the wrong thing."""

    settings: SynthesisSettings
    detector: LanguageDetector | None = None

    def of(self, sub: SubDocument) -> Callable[[Values], None]:
        """A check of values with a question about this sub-document, as `Conversation.values` takes it."""

        def check(values: Values) -> None:
            question = values["question"]
            if len(question) > _LONGEST_QUESTION:
                raise MalformedReplyError("the question is too long")
            for found in _MATERIAL.findall(question):
                if found.lower() not in sub.text.lower():
                    raise MalformedReplyError(
                        "the question speaks of chunks or connections", f"the question says {found}"
                    )
            if is_about_a_notice(question):
                raise MalformedReplyError("the question is about a licence or copyright notice")
            if self.detector is not None and self.detector.is_other(question, self.settings.language):
                raise MalformedReplyError(
                    "the question is in another language", f"expected a question in {self.settings.language}"
                )

        return check


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the chunk and its window stand, and where a linked unit may stand; unit numbers, ends exclusive."""

    chunk: Span
    window: Span
    linked_share: tuple[float, float]

    @property
    def shown(self) -> list[int]:
        """The units of the window without the chunk, in the order of the listing."""
        return [unit for unit in range(*self.window) if not self.chunk[0] <= unit < self.chunk[1]]

    def distance(self, unit: int) -> int:
        """How many units a linked unit is away from the nearest of the chunk; 1 for its neighbour."""
        return self.chunk[0] - unit if unit < self.chunk[0] else unit - self.chunk[1] + 1


def window_of(chunk: Span, units: int, window_units: int, margin: int, draw: random.Random) -> Span:
    """The longer of two windows, one of which begins and one ends ``margin`` units from the chunk.

    For a chunk of 5 units at ``i``, a window of 200 and a margin of 10: [i - 10, i + 190) and [i - 185, i + 15),
    both within the document. If both have the same length, one is drawn.
    """
    begins = max(0, chunk[0] - margin), min(units, chunk[0] - margin + window_units)
    ends = max(0, chunk[1] + margin - window_units), min(units, chunk[1] + margin)
    first, second = begins[1] - begins[0], ends[1] - ends[0]
    return draw.choice((begins, ends)) if first == second else begins if first > second else ends


def layout_of(units: int, settings: SynthesisSettings, number: int, draw: random.Random) -> Layout:
    """A random chunk with its window; the positions that are wanted come by turns, by the number."""
    size = settings.chunk_units
    if units < size + settings.closest_link + 1:
        raise DroppedError("too few units for a link")
    sides = ("anywhere", "anywhere")
    if settings.positions:
        sides = settings.positions[number % len(settings.positions)]
    chunk_side, linked_side = draw.sample(sides, 2)
    low, high = THIRDS[chunk_side]
    last = units - size
    first = draw.randint(
        min(last, int(low * units)), min(last, max(int(low * units), int(high * units) - size))
    )
    chunk = first, first + size
    window = window_of(chunk, units, settings.window_units, settings.window_margin, draw)
    return Layout(chunk, window, THIRDS[linked_side])


class LinkMaker:
    """Makes link questions; see `SynthesisSettings` for its numbers."""

    name = "link"

    def __init__(self, settings: SynthesisSettings, check: QuestionCheck) -> None:
        self._settings, self._check = settings, check

    def make(self, sub: SubDocument, talk: Conversation) -> Made:
        """A question on a chunk and the farthest unit that the model links with it."""
        settings = self._settings
        units = joined_units(sub.sentences, settings.unit_tokens)
        draw = random.Random(f"{settings.seed}-{sub.doc_id}-link")
        layout = layout_of(len(units), settings, sub.number, draw)
        chunk_text = _joined(sub.text, units, layout.chunk)
        shown = layout.shown
        listing = listed(sub.text, [units[unit] for unit in shown])
        values = talk.values(
            "link_connections",
            {"CHUNK": chunk_text, "UNITS": listing},
            [Field("links", "links", len(shown))],
        )
        linked, connection = self._farthest(values["links"], layout, len(units))
        question = talk.values(
            "link_question",
            {
                "FIRST PART": chunk_text,
                "SECOND PART": _joined(sub.text, units, (linked, linked + 1)),
                "CONNECTION": connection,
            },
            [Field("question", "text")],
            self._check.of(sub),
        )["question"]
        around_chunk = _widened(layout.chunk, settings.chunk_widening, len(units))
        around_link = _widened((linked, linked + 1), settings.link_widening, len(units))
        chunk_units = self._relevant(question, sub.text, units, around_chunk, talk)
        linked_units = self._relevant(question, sub.text, units, around_link, talk)
        if not chunk_units or not linked_units:
            raise DroppedError("one side holds no relevant unit")
        evidence = sorted(units[unit] for unit in (*chunk_units, *linked_units))
        details: dict[str, Any] = {
            "strategy": "link",
            "connection": connection,
            "units": len(units),
            "chunk": list(layout.chunk),
            "linked_unit": linked,
            "distance": layout.distance(linked),
            "contexts": [list(_span(units, layout.chunk)), list(units[linked])],
            "labels": [_shares(chunk_units, around_chunk), _shares(linked_units, around_link)],
        }
        return Made(question, tuple(evidence), details=details)

    def _farthest(self, links: Sequence[Link], layout: Layout, units: int) -> tuple[int, str]:
        """The linked unit that is farthest from the chunk, by its number in the document, and the connection."""
        if not links:
            raise DroppedError("the model found no link")
        kept = [link for link in links if not is_about_a_notice(link.connection)]
        if not kept:
            raise DroppedError("the connection is about a licence or copyright notice")
        shown = layout.shown
        far = [
            (layout.distance(shown[index]), shown[index], connection)
            for index, connection in kept
            if layout.distance(shown[index]) > self._settings.closest_link
        ]
        if not far:
            raise DroppedError("every link is too close")
        low, high = layout.linked_share
        placed = [entry for entry in far if low <= (entry[1] + 0.5) / units <= high]
        if not placed:
            raise DroppedError("no link at the wanted position")
        _, unit, connection = max(placed, key=lambda entry: (entry[0], -entry[1]))
        return unit, connection

    def _relevant(
        self, question: str, text: str, units: Sequence[Span], among: Span, talk: Conversation
    ) -> list[int]:
        """The units of a range that the question needs; the model first says whether there is one."""
        values = talk.values(
            "label_units",
            {"QUESTION": question, "UNITS": listed(text, units[slice(*among)])},
            [Field("relevant", "yes or no"), Field("indices", "indices", among[1] - among[0])],
            labels_agree,
        )
        return [among[0] + index for index in values["indices"]] if values["relevant"] else []


def labels_agree(values: Values) -> None:
    """Raise `MalformedReplyError` unless there are numbers exactly where the decision is yes."""
    if values["relevant"] != bool(values["indices"]):
        raise MalformedReplyError("yes or no and the numbers disagree")


def _widened(span: Span, by: int, units: int) -> Span:
    return max(0, span[0] - by), min(units, span[1] + by)


def _span(units: Sequence[Span], span: Span) -> Span:
    return units[span[0]][0], units[span[1] - 1][1]


def _joined(text: str, units: Sequence[Span], span: Span) -> str:
    return " ".join(text[slice(*_span(units, span))].split())


def _shares(relevant: Sequence[int], among: Span) -> list[int]:
    """How many units are relevant, and of how many."""
    return [len(relevant), among[1] - among[0]]


class ChunkMaker:
    """Makes a question of 20 consecutive sentences at a random place."""

    name = "chunk"

    def __init__(self, settings: SynthesisSettings, check: QuestionCheck) -> None:
        self._settings, self._check = settings, check

    def make(self, sub: SubDocument, talk: Conversation) -> Made:
        """A question on consecutive sentences."""
        count = self._settings.chunk_sentences
        if len(sub.sentences) < count:
            raise DroppedError("too few sentences for a chunk")
        draw = random.Random(f"{self._settings.seed}-{sub.doc_id}-chunk")
        first = draw.randint(0, len(sub.sentences) - count)
        chunk = spans_of(sub.sentences[first : first + count])

        def check(values: Values) -> None:
            self._check.of(sub)(values)
            refuse_none(values["indices"])

        values = talk.values(
            "chunk_question",
            {"SENTENCES": listed(sub.text, chunk)},
            [Field("question", "text"), Field("answer", "text"), Field("indices", "indices", count)],
            check,
        )
        details = {
            "strategy": "chunk",
            "units": len(sub.sentences),
            "chunk": [first, first + count],
            "contexts": [[chunk[0][0], chunk[-1][1]]],
            "labels": [[len(values["indices"]), count]],
        }
        evidence = tuple(chunk[index] for index in values["indices"])
        return Made(values["question"], evidence, values["answer"], details)


class PairMaker:
    """Makes a question of a random chunk and the most similar other one."""

    name = "pair"

    def __init__(self, settings: SynthesisSettings, check: QuestionCheck, encoder: Encoder) -> None:
        self._settings, self._check, self._encoder = settings, check, encoder
        self._embedding = threading.Lock()  # models of sentence-transformers are not thread-safe

    def make(self, sub: SubDocument, talk: Conversation) -> Made:
        """A question that needs both chunks."""
        count = self._settings.chunk_sentences
        chunks = [
            sub.sentences[start : start + count] for start in range(0, len(sub.sentences) - count + 1, count)
        ]
        if len(chunks) < 2:
            raise DroppedError("too few sentences for two chunks")
        draw = random.Random(f"{self._settings.seed}-{sub.doc_id}-pair")
        one = draw.randrange(len(chunks))
        other, similarity = self._nearest([sub.text[chunk[0].start : chunk[-1].end] for chunk in chunks], one)
        first, second = (spans_of(chunks[number]) for number in sorted((one, other)))

        def check(values: Values) -> None:
            self._check.of(sub)(values)
            refuse_none(values["first"])
            refuse_none(values["second"])

        values = talk.values(
            "pair_question",
            {"FIRST PART": listed(sub.text, first), "SECOND PART": listed(sub.text, second)},
            [
                Field("question", "text"),
                Field("answer", "text"),
                Field("first", "indices", count),
                Field("second", "indices", count),
            ],
            check,
        )
        places = [count * number for number in sorted((one, other))]
        details = {
            "strategy": "pair",
            "units": len(sub.sentences),
            "chunk": [places[0], places[0] + count],
            "linked_unit": places[1],
            "distance": places[1] - places[0] - count + 1,
            "similarity": round(similarity, 4),
            "contexts": [[spans[0][0], spans[-1][1]] for spans in (first, second)],
            "labels": [[len(values["first"]), count], [len(values["second"]), count]],
        }
        evidence = [first[index] for index in values["first"]] + [second[index] for index in values["second"]]
        return Made(values["question"], tuple(evidence), values["answer"], details)

    def _nearest(self, texts: Sequence[str], one: int) -> tuple[int, float]:
        """The number of the text that is most similar to one, and their cosine."""
        with self._embedding:
            vectors = embed_checked(self._encoder.passages, texts)  # (texts, width)
        vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        cosines = vectors @ vectors[one]
        cosines[one] = -np.inf
        best = int(np.argmax(cosines))
        return best, float(cosines[best])


def spans_of(sentences: Sequence[Sentence]) -> list[tuple[int, int]]:
    """The character spans of sentences."""
    return [(sentence.start, sentence.end) for sentence in sentences]


def refuse_none(indices: Sequence[int]) -> None:
    """Raise `MalformedReplyError` where an answer depends on no sentence."""
    if not indices:
        raise MalformedReplyError("the answer depends on no sentence")


def document_line(sub: SubDocument, made: Made, provenance: dict[str, Any]) -> dict[str, Any]:
    """A line of a question file: the sub-document with its question, and how it was made under "synthesis"."""
    question: dict[str, Any] = {
        "qid": f"{sub.doc_id}-{made.details.get('strategy', 'made')}",
        "question": made.question,
        "evidence": [list(span) for span in made.evidence],
    }
    if made.answer:
        question["answers"] = [made.answer]
    return {
        "doc_id": sub.doc_id,
        "source": sub.source,
        "split": "test" if sub.held_out else "train",
        "title": sub.title,
        "text": sub.text,
        "questions": [question],
        "synthesis": made.details | {"size": sub.size, "tokens": sub.tokens} | provenance,
    }
