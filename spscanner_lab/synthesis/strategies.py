"""Strategies that make questions with evidence from sub-documents by asking a language model."""

import random
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from spscanner_lab.synthesis.conversation import (
    Conversation,
    DroppedError,
    Field,
    Link,
    MalformedReplyError,
    Values,
    listed,
)
from spscanner_lab.synthesis.sub_documents import (
    LanguageDetector,
    SubDocument,
    SynthesisSettings,
    is_about_a_notice,
    joined_units,
)
from spscanner_rag.encoder.sentences import Embedder, embed_checked

Span = tuple[int, int]
THIRDS = {
    "start": (0.0, 1 / 3),
    "middle": (1 / 3, 2 / 3),
    "end": (2 / 3, 1.0),
    "anywhere": (0.0, 1.0),
}

_EMBEDDING = threading.Lock()  # models of sentence-transformers are not thread-safe
_LONGEST_QUESTION = 400
_MATERIAL = re.compile(
    r"\b(?:chunks?|connections?|linked units?|numbered (?:units?|sentences?))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Made:
    """A question with its evidence (spans of the sub-document, in order) and the stretches it was made from."""

    question: str
    evidence: tuple[Span, ...]
    contexts: tuple[Span, ...]
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Layout:
    """The units of the chunk and of its window, ends exclusive, and the part of the text for a linked unit."""

    chunk: Span
    window: Span
    linked_share: tuple[float, float]

    @property
    def shown(self) -> list[int]:
        """The units of the window without the chunk."""
        return [
            unit
            for unit in range(*self.window)
            if not self.chunk[0] <= unit < self.chunk[1]
        ]

    def distance(self, unit: int) -> int:
        """Return how many units a linked unit is away from the chunk's nearest unit.

        1 for a neighbour.
        """
        return (
            self.chunk[0] - unit if unit < self.chunk[0] else unit - self.chunk[1] + 1
        )


def window_of(
    chunk: Span, units: int, window_units: int, margin: int, draw: random.Random
) -> Span:
    """Return the longer of two windows, one of which begins and one ends ``margin`` units from the chunk.

    For a chunk of 5 units at ``i``, a window of 200 and a margin of 10: [i - 10, i +
    190) and [i - 185, i + 15), both within the document. If both have the same length,
    one is drawn.
    """
    begins = max(0, chunk[0] - margin), min(units, chunk[0] - margin + window_units)
    ends = max(0, chunk[1] + margin - window_units), min(units, chunk[1] + margin)
    first, second = begins[1] - begins[0], ends[1] - ends[0]
    return (
        draw.choice((begins, ends))
        if first == second
        else begins
        if first > second
        else ends
    )


def layout_of(
    units: int, settings: SynthesisSettings, number: int, draw: random.Random
) -> Layout:
    """Draw a chunk with its window; ``number`` selects the wanted positions in turn."""
    size = settings.chunk_units
    if units < size + settings.closest_link + 1:
        raise DroppedError("too few units for a link")
    positions = settings.positions or (("anywhere", "anywhere"),)
    chunk_side, linked_side = draw.sample(positions[number % len(positions)], 2)
    low, high = (int(share * units) for share in THIRDS[chunk_side])
    last = units - size
    first = draw.randint(min(last, low), min(last, max(low, high - size)))
    chunk = first, first + size
    window = window_of(
        chunk, units, settings.window_units, settings.window_margin, draw
    )
    return Layout(chunk, window, THIRDS[linked_side])


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes questions by the strategy of the settings, and rejects those that would teach the wrong thing."""

    settings: SynthesisSettings
    detector: LanguageDetector | None = None  # None takes questions in every language
    encoder: Embedder | None = None  # for the strategy "pair"

    def make(self, sub: SubDocument, talk: Conversation) -> Made:
        """Make a question; `DroppedError` if this sub-document gives none."""
        draw = random.Random(
            f"{self.settings.seed}-{sub.doc_id}-{self.settings.strategy}"
        )
        return (self._link if self.settings.strategy == "link" else self._of_chunks)(
            sub, talk, draw
        )

    def _link(self, sub: SubDocument, talk: Conversation, draw: random.Random) -> Made:
        """Ask about a chunk and the farthest unit linked with it, with the numbers of the released code.

        The question needs both sides; the labels of each side are asked for separately.
        """
        settings = self.settings
        units = joined_units(sub.sentences, settings.unit_tokens)
        layout = layout_of(len(units), settings, sub.number, draw)
        shown = layout.shown
        chunk_text = _joined(sub.text, units, layout.chunk)
        links = talk.values(
            "link_connections",
            {
                "CHUNK": chunk_text,
                "UNITS": listed(sub.text, [units[unit] for unit in shown]),
            },
            [Field("links", "links", len(shown))],
        )["links"]
        number, connection = _farthest(links, layout, len(units), settings.closest_link)
        linked = number, number + 1
        question = talk.values(
            "link_question",
            {
                "FIRST PART": chunk_text,
                "SECOND PART": _joined(sub.text, units, linked),
                "CONNECTION": connection,
            },
            [Field("question", "text")],
            partial(self._check, sub),
        )["question"]
        evidence: list[Span] = []
        for (first, last), by in (
            (layout.chunk, settings.chunk_widening),
            (linked, settings.link_widening),
        ):
            around = units[max(0, first - by) : last + by]
            labels = talk.values(
                "label_units",
                {"QUESTION": question, "UNITS": listed(sub.text, around)},
                [
                    Field("relevant", "yes or no"),
                    Field("indices", "indices", len(around)),
                ],
                _agree,
            )
            if not labels["relevant"]:
                raise DroppedError("one side holds no relevant unit")
            evidence += [around[number] for number in labels["indices"]]
        contexts = (_span(units[slice(*layout.chunk)]), units[number])
        return Made(question, tuple(sorted(evidence)), contexts)

    def _of_chunks(
        self, sub: SubDocument, talk: Conversation, draw: random.Random
    ) -> Made:
        """Ask about consecutive sentences at a random place, or about a chunk and the one most similar to it.

        The reply also has the answer and, for each chunk, the sentences that the answer
        depends on.
        """
        count, spans = (
            self.settings.chunk_sentences,
            [sentence[:2] for sentence in sub.sentences],
        )
        chunks = [
            spans[start : start + count]
            for start in range(0, len(spans) - count + 1, count)
        ]
        if self.settings.strategy == "chunk":
            if not chunks:
                raise DroppedError("too few sentences for a chunk")
            first = draw.randint(0, len(spans) - count)
            parts = {"indices": ("SENTENCES", spans[first : first + count])}
        else:
            if len(chunks) < 2:
                raise DroppedError("too few sentences for two chunks")
            one, other = sorted(
                self._similar(sub.text, chunks, draw.randrange(len(chunks)))
            )
            parts = {
                "first": ("FIRST PART", chunks[one]),
                "second": ("SECOND PART", chunks[other]),
            }
        values = talk.values(
            f"{self.settings.strategy}_question",
            {title: listed(sub.text, chunk) for title, chunk in parts.values()},
            [
                Field("question", "text"),
                Field("answer", "text"),
                *(Field(key, "indices", count) for key in parts),
            ],
            partial(self._check, sub),
        )
        evidence = tuple(
            chunk[number] for key, (_, chunk) in parts.items() for number in values[key]
        )
        contexts = tuple(_span(chunk) for _, chunk in parts.values())
        return Made(values["question"], evidence, contexts, values["answer"])

    def _similar(self, text: str, chunks: Sequence[Sequence[Span]], one: int) -> Span:
        """The number of a chunk, and that of the chunk with the most similar embedding."""
        assert self.encoder is not None
        with _EMBEDDING:
            vectors = embed_checked(
                self.encoder.passages, [text[slice(*_span(chunk))] for chunk in chunks]
            )
        vectors = vectors / np.maximum(
            np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9
        )
        cosines = vectors @ vectors[one]
        cosines[one] = -np.inf
        return one, int(np.argmax(cosines))

    def _check(self, sub: SubDocument, values: Values) -> None:
        """Raise `MalformedReplyError` for a useless question or an answer that depends on no sentence."""
        question = values["question"]
        if len(question) > _LONGEST_QUESTION:
            raise MalformedReplyError("the question is too long")
        for found in _MATERIAL.findall(question):
            if found.lower() not in sub.text.lower():
                reason = "the question speaks of chunks or connections"
                raise MalformedReplyError(reason, f"the question says {found}")
        if is_about_a_notice(question):
            raise MalformedReplyError(
                "the question is about a licence or copyright notice"
            )
        language = self.settings.language
        if self.detector is not None and self.detector.is_other(question, language):
            raise MalformedReplyError(
                "the question is in another language",
                f"expected a question in {language}",
            )
        if not all(values.get(side, True) for side in ("indices", "first", "second")):
            raise MalformedReplyError("the answer depends on no sentence")


def _agree(labels: Values) -> None:
    if labels["relevant"] != bool(labels["indices"]):
        raise MalformedReplyError("yes or no and the numbers disagree")


def _farthest(
    links: Sequence[Link], layout: Layout, units: int, closest: int
) -> tuple[int, str]:
    if not links:
        raise DroppedError("the model found no link")
    kept = [link for link in links if not is_about_a_notice(link.connection)]
    if not kept:
        raise DroppedError("the connection is about a licence or copyright notice")
    shown = layout.shown
    far = [
        (shown[index], how)
        for index, how in kept
        if layout.distance(shown[index]) > closest
    ]
    if not far:
        raise DroppedError("every link is too close")
    low, high = layout.linked_share
    placed = [(unit, how) for unit, how in far if low <= (unit + 0.5) / units <= high]
    if not placed:
        raise DroppedError("no link at the wanted position")
    return max(placed, key=lambda entry: (layout.distance(entry[0]), -entry[0]))


def _span(units: Sequence[Span]) -> Span:
    return units[0][0], units[-1][1]


def _joined(text: str, units: Sequence[Span], span: Span) -> str:
    return " ".join(text[slice(*_span(units[slice(*span)]))].split())


def document_line(
    sub: SubDocument, made: Made, strategy: str, provenance: dict[str, Any]
) -> dict[str, Any]:
    """Return a line of a question file: the sub-document, its question and, under "synthesis", how it was made."""
    question: dict[str, Any] = {
        "qid": f"{sub.doc_id}-{strategy}",
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
        "synthesis": {
            "strategy": strategy,
            "contexts": [list(span) for span in made.contexts],
            "size": sub.size,
            "tokens": sub.tokens,
            **provenance,
        },
    }
