"""Strategies that make a question with evidence from a sub-document."""

import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spscanner_lab.synthesis.checks import check_labels, check_question
from spscanner_lab.synthesis.conversation import (
    Conversation,
    DroppedError,
    Values,
    listed,
)
from spscanner_lab.synthesis.language_detection import LanguageDetector
from spscanner_lab.synthesis.layout import LinkLayout, Span, layout_of
from spscanner_lab.synthesis.made_question import MadeQuestion
from spscanner_lab.synthesis.notices import is_about_a_notice
from spscanner_lab.synthesis.reply_form import Field, Link
from spscanner_lab.synthesis.settings import SynthesisSettings
from spscanner_lab.synthesis.sub_documents import SubDocument, joined_units
from spscanner_rag.encoder.embedders import Embedder, embed_checked

_EMBEDDING = threading.Lock()  # models of sentence-transformers are not thread-safe


class _Part(NamedTuple):
    """Sentences that a question is made from, and their title in the prompt."""

    title: str
    sentences: Sequence[Span]


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes questions by the strategy of the settings.

    It rejects questions that would teach the wrong thing.

    Attributes
    ----------
    settings : SynthesisSettings
        The strategy and its numbers.
    detector : LanguageDetector or None
        None takes questions in every language.
    encoder : Embedder or None
        For the strategy "pair".
    """

    settings: SynthesisSettings
    detector: LanguageDetector | None = None
    encoder: Embedder | None = None

    def make(
        self, sub_document: SubDocument, conversation: Conversation
    ) -> MadeQuestion:
        """Make a question, or raise `DroppedError` if this sub-document gives none."""
        settings = self.settings
        random_source = random.Random(
            f"{settings.seed}-{sub_document.doc_id}-{settings.strategy}"
        )
        if settings.strategy == "link":
            return self._from_link(sub_document, conversation, random_source)
        return self._from_sentences(sub_document, conversation, random_source)

    def _from_link(
        self,
        sub_document: SubDocument,
        conversation: Conversation,
        random_source: random.Random,
    ) -> MadeQuestion:
        """Ask about a chunk and the farthest unit linked with it.

        The question needs both sides; the labels of each side are asked for separately.
        The numbers are those of the released code.
        """
        settings = self.settings
        text = sub_document.text
        units = joined_units(sub_document.sentences, settings.unit_tokens)
        layout = layout_of(len(units), settings, sub_document.number, random_source)
        chunk_text = _joined(text, units, layout.chunk)
        shown_units = [units[unit] for unit in layout.shown]
        links = conversation.values(
            "link_connections",
            {"CHUNK": chunk_text, "UNITS": listed(text, shown_units)},
            [Field("links", "links", len(shown_units))],
        )["links"]
        linked_unit, connection = _farthest(
            links, layout, len(units), settings.closest_link
        )
        linked = (linked_unit, linked_unit + 1)
        name = "link_question_from_connection"
        sections = {"CONNECTION": connection}
        if settings.question_from == "parts":
            name = "link_question"
            parts = {
                "FIRST PART": chunk_text,
                "SECOND PART": _joined(text, units, linked),
            }
            sections = parts | sections
        question = conversation.values(
            name,
            sections,
            [Field("question", "text")],
            lambda values: self._check(values, sub_document),
        )["question"]
        chunk_side = _widened(units, layout.chunk, settings.chunk_widening)
        linked_side = _widened(units, linked, settings.link_widening)
        evidence = _relevant(conversation, question, text, chunk_side)
        evidence += _relevant(conversation, question, text, linked_side)
        chunk_span = _span(units[slice(*layout.chunk)])
        contexts = (chunk_span, units[linked_unit])
        return MadeQuestion(question, tuple(sorted(evidence)), contexts)

    def _from_sentences(
        self,
        sub_document: SubDocument,
        conversation: Conversation,
        random_source: random.Random,
    ) -> MadeQuestion:
        """Ask about consecutive sentences, or about a chunk and the most similar one.

        Both are at random places. The reply also has the answer and, for each chunk,
        the sentences that the answer depends on.
        """
        strategy = self.settings.strategy
        text = sub_document.text
        spans = [(start, end) for start, end, _ in sub_document.sentences]
        if strategy == "chunk":
            parts = self._one_part(spans, random_source)
        else:
            parts = self._two_parts(text, spans, random_source)
        sections = {}
        fields = [Field("question", "text"), Field("answer", "text")]
        for name, part in parts.items():
            sections[part.title] = listed(text, part.sentences)
            fields.append(Field(name, "indices", self.settings.chunk_sentences))
        values = conversation.values(
            f"{strategy}_question",
            sections,
            fields,
            lambda values: self._check(values, sub_document),
        )
        evidence: list[Span] = []
        for name, part in parts.items():
            evidence += [part.sentences[number] for number in values[name]]
        contexts = tuple(_span(part.sentences) for part in parts.values())
        return MadeQuestion(
            values["question"], tuple(evidence), contexts, values["answer"]
        )

    def _one_part(
        self, spans: Sequence[Span], random_source: random.Random
    ) -> dict[str, _Part]:
        """Draw consecutive sentences."""
        count = self.settings.chunk_sentences
        if len(spans) < count:
            raise DroppedError("too few sentences for a chunk")
        first = random_source.randint(0, len(spans) - count)
        return {"indices": _Part("SENTENCES", spans[first : first + count])}

    def _two_parts(
        self, text: str, spans: Sequence[Span], random_source: random.Random
    ) -> dict[str, _Part]:
        """Draw a chunk of consecutive sentences, and take the most similar one."""
        count = self.settings.chunk_sentences
        starts = range(0, len(spans) - count + 1, count)
        chunks = [spans[start : start + count] for start in starts]
        if len(chunks) < 2:
            raise DroppedError("too few sentences for two chunks")
        drawn = random_source.randrange(len(chunks))
        first, second = sorted([drawn, self._most_similar(text, chunks, drawn)])
        return {
            "first": _Part("FIRST PART", chunks[first]),
            "second": _Part("SECOND PART", chunks[second]),
        }

    def _most_similar(
        self, text: str, chunks: Sequence[Sequence[Span]], number: int
    ) -> int:
        """Return the number of the chunk whose embedding is nearest to another's."""
        assert self.encoder is not None
        texts = []
        for chunk in chunks:
            start, end = _span(chunk)
            texts.append(text[start:end])
        with _EMBEDDING:
            vectors = embed_checked(self.encoder.passages, texts)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit_vectors = vectors / np.maximum(lengths, 1e-9)
        cosines = unit_vectors @ unit_vectors[number]
        cosines[number] = -np.inf
        return int(np.argmax(cosines))

    def _check(self, values: Values, sub_document: SubDocument) -> None:
        check_question(values, sub_document.text, self.settings.language, self.detector)


def _relevant(
    conversation: Conversation, question: str, text: str, units: Sequence[Span]
) -> list[Span]:
    """Return the units that the model labels as relevant to a question."""
    labels = conversation.values(
        "label_units",
        {"QUESTION": question, "UNITS": listed(text, units)},
        [Field("relevant", "yes or no"), Field("indices", "indices", len(units))],
        check_labels,
    )
    if not labels["relevant"]:
        raise DroppedError("one side holds no relevant unit")
    return [units[number] for number in labels["indices"]]


def _farthest(
    links: Sequence[Link], layout: LinkLayout, units: int, closest: int
) -> tuple[int, str]:
    """Return the linked unit that is farthest from the chunk, and the connection."""
    if not links:
        raise DroppedError("the model found no link")
    useful = [link for link in links if not is_about_a_notice(link.connection)]
    if not useful:
        raise DroppedError("the connection is about a licence or copyright notice")
    shown = layout.shown
    candidates = [(shown[index], connection) for index, connection in useful]
    distant = []
    for unit, connection in candidates:
        if layout.distance(unit) > closest:
            distant.append((unit, connection))
    if not distant:
        raise DroppedError("every link is too close")
    low, high = layout.linked_share
    placed = []
    for unit, connection in distant:
        if low <= (unit + 0.5) / units <= high:
            placed.append((unit, connection))
    if not placed:
        raise DroppedError("no link at the wanted position")
    return max(placed, key=lambda entry: (layout.distance(entry[0]), -entry[0]))


def _widened(units: Sequence[Span], part: Span, by: int) -> Sequence[Span]:
    """Return the units of a part of the document, and ``by`` more on each side."""
    first, end = part
    return units[max(0, first - by) : end + by]


def _span(units: Sequence[Span]) -> Span:
    return units[0][0], units[-1][1]


def _joined(text: str, units: Sequence[Span], part: Span) -> str:
    """Return the text of consecutive units, with single spaces between words."""
    start, end = _span(units[slice(*part)])
    return " ".join(text[start:end].split())
